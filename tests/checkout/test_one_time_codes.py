"""One-time codes: five tries, limits per intent, phone and client address, ten minutes, all stored in the database."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from cryptography.fernet import Fernet

from services.checkout.payments.limits import CODES_PER_INTENT, LimitExceededError, PaymentLimits
from services.checkout.payments.one_time_codes import RESEND_AFTER_S, VALID_S
from services.checkout.providers.http_client import HttpReply, ProviderClient
from services.checkout.verification.verifier import Verifier
from shared.domain.attempts.states import IN_FLIGHT_WINDOW, MAX_CODE_TRIES
from shared.platform.encryption import SecretBox
from shared.platform.settings import SandboxSettings
from tests.checkout.customer import Customer
from tests.checkout.test_payments import CODE, FORM, PAID
from tests.checkout.world import CheckoutWorld
from tests.clock import Clock

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def still(pages: CheckoutWorld) -> Clock:
    """The database's clock, stopped at NOW."""
    clock = Clock(pages.database)
    clock.stop_at(NOW)
    return clock


def test_five_wrong_codes_end_the_attempt(pages: CheckoutWorld) -> None:
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_wallet("adfali", "0921234567")
    for left in ("4 tries left", "3 tries left", "2 tries left", "1 try left"):
        customer.enter_code("2222")
        assert customer.title == CODE
        assert left in customer.text
        assert 'value="2222"' not in customer.answer.text
    customer.enter_code("2222")
    assert customer.title == FORM
    assert "Too many wrong codes." in customer.text
    assert pages.attempts(intent) == [("declined", "too_many_codes")]
    customer.pay_by_wallet("adfali", "0921234567")
    customer.enter_code("1111")
    assert customer.title == PAID


def test_each_wrong_code_is_recorded_with_its_number(pages: CheckoutWorld) -> None:
    """With the event that followed from it. The request for a code, and a right code, are not wrong codes."""
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_card("6395043835180860")
    for _ in range(MAX_CODE_TRIES):
        customer.enter_code("222222")
    customer.pay_by_wallet("adfali", "0921234567")
    customer.enter_code("2222")
    customer.enter_code("1111")
    assert customer.title == PAID
    recorded = pages.rows(
        """select split_part(type, '.', 2), wrong_code from intent_events where intent_uuid = %s
           and (wrong_code is not null or type not like '%%processing') order by seq""",
        intent.uuid,
    )
    assert recorded == [
        ("created", None),
        ("requires_payment_method", None),
        *(("requires_payment_method", number) for number in (1, 2, 3, 4, 5, 1)),
        ("succeeded", None),
    ]


def test_concurrent_codes_use_at_most_five_tries(pages: CheckoutWorld) -> None:
    """Of twenty at the same moment, at most five reach the wallet."""
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_wallet("adfali", "0921234567")
    tabs = [pages.customer(intent) for _ in range(20)]
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda tab: tab.enter_code("2222"), tabs))
    (tried,) = pages.rows("select codes_tried from code_challenges")[0]
    assert 1 <= tried <= MAX_CODE_TRIES
    assert pages.rows("select max(provider_requests) from payment_attempts")[0][0] == tried


def test_code_expires_after_ten_minutes(pages: CheckoutWorld, still: Clock) -> None:
    intent = pages.make_intent(expires_at=NOW + timedelta(hours=2))
    customer = pages.customer(intent)
    customer.pay_by_wallet("sadad", "0913632323")
    still.stop_at(NOW + timedelta(seconds=VALID_S))
    customer.enter_code("111111")
    assert customer.title == CODE
    assert "This code has expired" in customer.text
    assert pages.status(intent) == "requires_payment_method"
    customer.resend_code()
    customer.enter_code("111111")
    assert customer.title == PAID


def test_code_can_be_resent_after_a_pause(pages: CheckoutWorld, still: Clock) -> None:
    intent = pages.make_intent(expires_at=NOW + timedelta(hours=2))
    customer = pages.customer(intent)
    customer.pay_by_wallet("sadad", "0913632323")
    assert customer.resend_code().status_code == 429
    assert "sent a moment ago" in customer.text
    still.stop_at(NOW + timedelta(seconds=RESEND_AFTER_S))
    assert customer.resend_code().status_code == 200
    assert customer.title == CODE
    assert pages.rows("select codes_sent from code_challenges") == [(2,)]
    assert customer.resend_code().status_code == 429
    customer.enter_code("111111")
    assert customer.title == PAID


def test_concurrent_requests_resend_the_code_once(pages: CheckoutWorld, still: Clock) -> None:
    intent = pages.make_intent(expires_at=NOW + timedelta(hours=2))
    pages.customer(intent).pay_by_wallet("sadad", "0913632323")
    still.stop_at(NOW + timedelta(seconds=RESEND_AFTER_S))
    tabs = [pages.customer(intent) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda tab: tab.resend_code().status_code, tabs))
    assert sorted(answers) == [200, *[429] * 7]
    assert pages.rows("select codes_sent from code_challenges") == [(2,)]


def test_new_code_does_not_reset_the_tries(pages: CheckoutWorld, still: Clock) -> None:
    intent = pages.make_intent(expires_at=NOW + timedelta(hours=2))
    customer = pages.customer(intent)
    customer.pay_by_wallet("adfali", "0921234567")
    for _ in range(MAX_CODE_TRIES - 1):
        customer.enter_code("2222")
    still.stop_at(NOW + timedelta(seconds=RESEND_AFTER_S))
    customer.resend_code()
    customer.enter_code("2222")
    assert pages.attempts(intent) == [("declined", "too_many_codes")]


def test_number_of_codes_per_intent_is_limited(pages: CheckoutWorld) -> None:
    """Also with different phones."""
    customer = pages.customer(pages.make_intent())
    for number in range(CODES_PER_INTENT):
        assert customer.pay_by_wallet("adfali", f"092123456{number}").status_code == 200
        customer.open("lang=en&change=1")
    answer = customer.pay_by_wallet("adfali", "0921111111")
    assert answer.status_code == 429
    assert "Too many codes were sent." in customer.text


def test_number_of_codes_per_phone_is_limited(world: CheckoutWorld) -> None:
    """Over all intents. It resets after a payment with this phone, and after an hour."""
    world.settings = replace(world.settings, checkout=replace(world.settings.checkout, codes_per_phone=2))
    clock = Clock(world.database)
    clock.stop_at(NOW)

    def send_code(phone: str = "0921234567") -> int:
        intent = world.make_intent(expires_at=clock_now + timedelta(hours=1))
        return world.customer(intent).pay_by_wallet("adfali", phone).status_code

    with world.serve():
        clock_now = NOW
        assert [send_code(), send_code(), send_code()] == [200, 200, 429]
        assert send_code("+218921234567") == 429
        assert send_code("0921234568") == 200
        clock_now = NOW + timedelta(hours=1)
        clock.stop_at(clock_now)
        assert send_code() == 200
        payer = world.customer(world.make_intent(expires_at=clock_now + timedelta(hours=1)))
        payer.pay_by_wallet("adfali", "0921234567")
        payer.enter_code("1111")
        assert payer.title == PAID
        assert [send_code(), send_code(), send_code()] == [200, 200, 429]


def test_limits_of_a_phone_in_a_test_application_are_its_own(world: CheckoutWorld) -> None:
    """Nobody can use up or reset the limits of somebody's phone in the sandbox, or take it from other developers."""
    limits = PaymentLimits(b"key", codes_per_phone=2, failures_per_address=100)
    one, other = (limits.within_test_application(uuid4()) for _ in range(2))
    with world.service_database.transaction() as connection:

        def may_send(counted: PaymentLimits) -> bool:
            try:
                counted.count_code_sent(connection, uuid4(), "0921234567")
            except LimitExceededError:
                return False
            return True

        assert [may_send(one) for _ in range(3)] == [True, True, False]
        assert [may_send(limits) for _ in range(3)] == [True, True, False]
        assert may_send(other)
        one.forget_phone(connection, "0921234567")
        assert may_send(one)
        assert not may_send(limits)


@pytest.mark.parametrize("is_notified", [False, True])
def test_payment_in_the_sandbox_resets_only_the_limits_of_its_application(
    world: CheckoutWorld, is_notified: bool
) -> None:
    """Whether the response to the code settles it, or a notification."""
    phone, keep = "0921234567", uuid4()
    limits = world.dependencies.payments.limits
    with world.service_database.transaction() as connection:
        limits.count_code_sent(connection, keep, phone)
    test_limits = limits.within_test_application(world.application.id)
    intent = world.make_intent()
    with world.serve():
        payer = world.customer(intent)
        payer.pay_by_wallet("adfali", phone)
        assert _is_counted(world, test_limits, phone)
        if is_notified:
            assert world.bank.settle(world.charges(intent)[0], "paid").json()["notified"] is True
        else:
            payer.enter_code("1111")
        payer.open()
        assert payer.title == PAID
    assert not _is_counted(world, test_limits, phone)
    with world.service_database.transaction() as connection:
        for _ in range(world.settings.checkout.codes_per_phone - 1):
            limits.count_code_sent(connection, uuid4(), phone)
        with pytest.raises(LimitExceededError):
            limits.count_code_sent(connection, uuid4(), phone)


def _is_counted(world: CheckoutWorld, limits: PaymentLimits, phone: str) -> bool:
    key = limits._hash(f"phone/{phone}")
    return bool(world.rows("select from checkout_limits where key = %s", key))


def test_phone_is_stored_encrypted_until_the_intent_is_paid(pages: CheckoutWorld) -> None:
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_wallet("sadad", "0913632323")
    ((hint, sealed),) = pages.rows("select phone_hint, encrypted_phone from code_challenges")
    assert hint == "323"
    assert "0913632323" not in sealed
    customer.enter_code("111111")
    assert pages.rows("select encrypted_phone from code_challenges") == [(None,)]


def test_code_of_another_tab_is_refused(pages: CheckoutWorld) -> None:
    """The method was changed in a second tab: the first code no longer works, and the new one pays once."""
    intent = pages.make_intent()
    first = pages.customer(intent)
    first.pay_by_wallet("sadad", "0913632323")
    second = pages.customer(intent)
    second.open("lang=en&change=1")
    second.pay_by_wallet("adfali", "0921234567")
    first.enter_code("111111")
    assert first.title == CODE
    assert "Adfali" in first.text
    assert pages.attempts(intent) == [("abandoned", None), ("awaiting_code", None)]
    assert [charge["status"] for charge in pages.charges(intent)] == ["needs_code", "needs_code"]
    for tab in (first, second):
        tab.enter_code("1111")
        assert tab.title == PAID
    assert [charge["status"] for charge in pages.charges(intent)].count("paid") == 1


def test_number_of_attempts_per_intent_is_limited(pages: CheckoutWorld) -> None:
    """So nobody can try a list of cards."""
    customer = pages.customer(pages.make_intent())
    statuses = [customer.pay_by_card("4000000000000002").status_code for _ in range(21)]
    assert statuses == [*[200] * 20, 429]
    assert "too many attempts" in customer.text


def test_an_unreachable_wallet_does_not_count_towards_limits(world: CheckoutWorld) -> None:
    """No code was sent, so none counts for the intent or the phone."""
    away = SandboxSettings("http://127.0.0.1:1", "x" * 20, world.bank.ledger)
    world.settings, here = replace(world.settings, sandbox=away), world.settings
    with world.serve():
        customer = world.customer(world.make_intent())
        statuses = {customer.pay_by_wallet("adfali", "0921234567").status_code for _ in range(15)}
    assert statuses == {200}
    world.settings = here
    with world.serve():
        customer = world.customer(world.make_intent())
        customer.pay_by_wallet("adfali", "0921234567")
        assert customer.title == CODE


def test_wrong_codes_count_for_the_phone_over_a_day(world: CheckoutWorld) -> None:
    """Over all codes and intents."""
    world.settings = replace(world.settings, checkout=replace(world.settings.checkout, codes_per_phone=3))
    clock = Clock(world.database)
    clock.stop_at(NOW)
    with world.serve():
        for hour in range(2):
            clock.stop_at(NOW + timedelta(hours=2 * hour))
            customer = world.customer(world.make_intent(expires_at=NOW + timedelta(days=2)))
            customer.pay_by_wallet("adfali", "0921234567")
            for _ in range(3):
                customer.enter_code("2222")
        clock.stop_at(NOW + timedelta(hours=6))
        intent = world.make_intent(expires_at=NOW + timedelta(days=2))
        assert world.customer(intent).pay_by_wallet("adfali", "0921234567").status_code == 429
        clock.stop_at(NOW + timedelta(hours=25))
        assert world.customer(intent).pay_by_wallet("adfali", "0921234567").status_code == 200


def test_wrong_codes_are_counted_though_all_codes_were_sent_before(world: CheckoutWorld) -> None:
    """The limit holds when a code is tried. A right code is not wrong because of it."""
    world.settings = replace(world.settings, checkout=replace(world.settings.checkout, codes_per_phone=3))
    intents = [world.make_intent() for _ in range(3)]
    with world.serve():
        customers = [world.customer(intent) for intent in intents]
        for customer in customers:
            customer.pay_by_wallet("adfali", "0921234567")
            assert customer.title == CODE
        first, second, _ = customers
        wrong = [first.enter_code("2222") for _ in range(4)] + [second.enter_code("2222") for _ in range(2)]
        assert {response.status_code for response in wrong} == {200}
        for customer in customers:
            assert customer.enter_code("1111").status_code == 429
            assert "Too many wrong codes were entered for this phone number" in customer.text
        assert {world.status(intent) for intent in intents} == {"requires_payment_method"}
        Clock(world.database).advance(timedelta(days=1))
        fresh = world.customer(world.make_intent())
        fresh.pay_by_wallet("adfali", "0921234567")
        fresh.enter_code("1111")
        assert fresh.title == PAID


class TestLimitsOfAClientAddress:
    """Customers of one carrier can share an address: failures and unused codes count, payments do not."""

    @pytest.fixture
    def limited(self, world: CheckoutWorld) -> Iterator[CheckoutWorld]:
        checkout = replace(world.settings.checkout, failures_per_address=5, codes_per_phone=100)
        world.settings = replace(world.settings, checkout=checkout, trusted_proxies=1)
        with world.serve():
            yield world

    def test_phone_numbers_cannot_be_tried_one_after_another(self, limited: CheckoutWorld) -> None:
        statuses = []
        for number in range(7):
            customer = customer_at(limited, "192.0.2.1")
            statuses.append(customer.pay_by_wallet("sadad", f"091000000{number}").status_code)
        assert statuses == [200] * 5 + [429] * 2
        assert 3500 < int(customer.answer.headers["Retry-After"]) <= 3600
        assert "too many failed attempts from your network" in customer.text
        assert customer_at(limited, "192.0.2.2").pay_by_card("4242424242424242").status_code == 200
        Clock(limited.database).advance(timedelta(hours=1))
        assert customer_at(limited, "192.0.2.1").pay_by_card("4242424242424242").status_code == 200

    def test_declined_cards_and_wrong_codes_count(self, limited: CheckoutWorld) -> None:
        customer = customer_at(limited, "2001:db8::1")
        customer.pay_by_card("4000000000000002")
        customer.pay_by_card("4000000000000002")
        customer.pay_by_wallet("adfali", "0921234567")
        customer.enter_code("2222")
        customer.enter_code("2222")
        assert customer.enter_code("1111").status_code == 429
        other = customer_at(limited, "2001:db8::ffff:1")  # the same /64
        assert other.pay_by_card("4242424242424242").status_code == 429

    def test_payments_do_not_count(self, limited: CheckoutWorld) -> None:
        for _ in range(8):
            customer = customer_at(limited, "192.0.2.1")
            customer.pay_by_wallet("adfali", "0921234567")
            customer.enter_code("1111")
            assert customer.title == PAID
            customer = customer_at(limited, "192.0.2.1")
            customer.pay_by_card("4242424242424242")
            assert customer.title == PAID

    def test_codes_that_are_not_used_count(self, limited: CheckoutWorld) -> None:
        clock = Clock(limited.database)
        customer = customer_at(limited, "192.0.2.1")
        customer.pay_by_wallet("adfali", "0921234567")
        for _ in range(4):
            clock.advance(timedelta(seconds=61))
            assert customer.resend_code().status_code == 200
        clock.advance(timedelta(seconds=61))
        assert customer.resend_code().status_code == 429

    def test_an_outage_of_the_provider_does_not_count(
        self, limited: CheckoutWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(ProviderClient, "post_json", lambda *_: HttpReply(503, {"message": "later"}))
            for _ in range(8):
                customer = customer_at(limited, "192.0.2.1")
                assert customer.pay_by_wallet("adfali", "0921234567").status_code == 200
        customer.pay_by_card("4242424242424242")
        assert customer.title == PAID


def customer_at(world: CheckoutWorld, address: str) -> Customer:
    """Return a customer with a new payment, whose requests come from this address through our proxy."""
    customer = world.customer(world.make_intent())
    customer._session.headers["X-Forwarded-For"] = f"198.51.100.9, {address}"
    return customer


def test_payment_succeeds_if_the_phone_cannot_be_decrypted(pages: CheckoutWorld) -> None:
    """As if a key was removed from MIZAN_SECRET_KEYS too early."""
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_wallet("sadad", "0913632323")
    with pages.database.transaction() as connection:
        sealed = SecretBox((Fernet.generate_key().decode(),)).encrypt("x", "y")
        connection.execute("update code_challenges set encrypted_phone = %s", (sealed,))
    customer.enter_code("111111")
    assert customer.title == PAID


def test_failed_start_of_a_wallet_payment_does_not_ask_for_a_code(
    pages: CheckoutWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProviderClient, "post_json", lambda *_: HttpReply(503, {"message": "later"}))
    customer = pages.customer(pages.make_intent())
    customer.pay_by_wallet("adfali", "0921234567")
    assert customer.title == FORM
    assert "is not responding. Try again in a moment. Nothing was taken." in customer.text


def test_failed_resend_of_a_code_can_be_repeated_at_once(
    pages: CheckoutWorld, still: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The earlier code is still valid."""
    customer = pages.customer(pages.make_intent(expires_at=NOW + timedelta(hours=2)))
    customer.pay_by_wallet("adfali", "0921234567")
    still.stop_at(NOW + timedelta(seconds=RESEND_AFTER_S))
    with monkeypatch.context() as broken:
        broken.setattr(ProviderClient, "post_json", lambda *_: HttpReply(503, {}))
        assert customer.resend_code().status_code == 502
        assert "could not be sent" in customer.text
    assert customer.resend_code().status_code == 200
    assert "A new code was sent." in customer.text
    customer.enter_code("1111")
    assert customer.title == PAID


def test_attempt_ends_if_the_response_to_the_fifth_code_is_lost(pages: CheckoutWorld) -> None:
    """The inquiry says that another code is needed, but no tries are left."""
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_wallet("adfali", "0921234567")
    (attempt,) = pages.attempt_ids(intent)
    with pages.database.transaction() as connection:
        connection.execute("update code_challenges set codes_tried = 5")
        connection.execute(
            """update payment_attempts set state = 'unknown', provider_requests = 5, sent_at = mizan_now(),
                   next_verify_at = mizan_now()"""
        )
        connection.execute("update payment_intents set status = 'processing'")
    verifier = Verifier(pages.service_database, pages.dependencies.providers, pages.dependencies.side_effects)
    Clock(pages.database).advance(IN_FLIGHT_WINDOW)
    verifier.verify(attempt)
    assert pages.attempts(intent) == [("declined", "too_many_codes")]
