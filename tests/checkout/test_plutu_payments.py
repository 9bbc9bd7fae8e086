"""Payments through Plutu: wallets, its page for cards, returns and callbacks (DESIGN §4)."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID, uuid4

import pytest
import requests
from cryptography.fernet import Fernet
from psycopg import Connection

from services.checkout.app import make_app
from services.checkout.payments import payment_service
from services.checkout.verification.verifier import Verifier
from services.scheduler.jobs.verification_requests import VerificationRequests
from shared.domain.applications.modes import ApplicationMode
from shared.domain.applications.provider_accounts import ProviderName, set_provider_account
from shared.domain.applications.registry import NewApplication
from shared.domain.attempts.provider_exchange import (
    AttemptOutcome,
    ProviderRequest,
    SettlementResult,
)
from shared.domain.attempts.settlement import settle_decision, settle_response
from shared.domain.attempts.states import ProviderAnswer
from shared.domain.attempts.undecided import list_undecided
from shared.domain.intents.intent import Intent
from shared.domain.payment_methods import PaymentMethod
from shared.platform.database.pool import Database, DatabaseUnavailableError
from shared.platform.encryption import SecretBox
from tests.checkout.fake_plutu import (
    ACCESS_TOKEN,
    API_KEY,
    DROPS,
    SECRET_KEY,
    FakePlutu,
    as_query,
    signed,
)
from tests.checkout.test_payments import CODE, FORM, PAID, PROCESSING
from tests.checkout.world import CheckoutWorld
from tests.clock import Clock

CREDENTIALS = {"api_key": API_KEY, "access_token": ACCESS_TOKEN, "secret_key": SECRET_KEY}
LEAVING = "Taking you to the bank's page"
OPEN = "Continue on the bank's page"


@pytest.fixture
def plutu() -> Iterator[FakePlutu]:
    with FakePlutu() as made:
        yield made


@pytest.fixture
def accounts(world: CheckoutWorld) -> dict[PaymentMethod, UUID]:
    world.use_live_application()
    return {method: _set_plutu(world, method) for method in PaymentMethod}


@pytest.fixture
def shop(
    world: CheckoutWorld, plutu: FakePlutu, accounts: dict[PaymentMethod, UUID]
) -> Iterator[CheckoutWorld]:
    """An application with Plutu accounts, served by the fake Plutu."""
    assert accounts
    world.settings = replace(
        world.settings, checkout=replace(world.settings.checkout, plutu_url=plutu.url), sandbox=None
    )
    with world.serve():
        yield world


def _set_plutu(
    world: CheckoutWorld, method: PaymentMethod, application: UUID | None = None, secret_key: str = SECRET_KEY
) -> UUID:
    with world.database.transaction() as connection:
        return set_provider_account(
            connection,
            world.box,
            application or world.application.id,
            method,
            provider=ProviderName.PLUTU,
            credentials={**CREDENTIALS, "secret_key": secret_key},
        )


@pytest.mark.parametrize(
    ("method", "phone", "code"), [("sadad", "0913632323", "123456"), ("adfali", "0941234567", "1234")]
)
def test_wallet_is_paid_through_plutu(
    shop: CheckoutWorld, plutu: FakePlutu, method: str, phone: str, code: str
) -> None:
    intent = shop.make_intent(amount=25_550)
    customer = shop.customer(intent)
    customer.pay_by_wallet(method, phone)
    assert customer.title == CODE
    customer.enter_code(code[::-1])
    assert "This code is not right." in customer.text
    customer.enter_code(code)
    assert customer.title == PAID
    assert [(charge.amount, charge.invoice_no.split(".")[1]) for charge in plutu.charges] == [("25.55", "2")]
    assert plutu.complaints == []
    ((reference, provider),) = shop.rows("select provider_reference, provider from payment_attempts")
    assert (reference, provider) == (plutu.charges[0].transaction_id, "plutu")


def _leave(shop: CheckoutWorld, plutu: FakePlutu, intent: Intent) -> str:
    """Start a card payment and return the URL of the bank's page."""
    customer = shop.customer(intent)
    assert "Card number" not in customer.text
    customer.post("", method="card")
    assert customer.title == LEAVING
    (page,) = [url for url in plutu.pages if url in customer.answer.text]
    return page


def test_a_card_is_paid_on_the_banks_page(shop: CheckoutWorld, plutu: FakePlutu) -> None:
    intent = shop.make_intent(amount=30_000)
    back = plutu.pay(_leave(shop, plutu, intent))
    answer = requests.get(back, timeout=10)  # another browser, without a session
    assert answer.history[0].status_code == 303
    assert answer.url == shop.page(intent, "en")
    assert shop.status(intent) == "succeeded"
    assert "Your payment is complete" in answer.text
    for _ in range(2):  # a refresh of the return page
        assert requests.get(back, timeout=10).status_code == 200
    assert shop.events(intent).count("succeeded") == 1
    assert shop.attempts(intent) == [("paid", None)]


def test_customer_who_cancels_at_the_bank_can_pay_with_a_wallet(
    shop: CheckoutWorld, plutu: FakePlutu
) -> None:
    intent = shop.make_intent(amount=30_000)
    back = plutu.cancel(_leave(shop, plutu, intent))
    assert "The payment was canceled on the bank&#39;s page." in requests.get(back, timeout=10).text
    assert shop.attempts(intent) == [("declined", "left_by_customer")]
    customer = shop.customer(intent)
    customer.pay_by_wallet("adfali", "0941234567")
    customer.enter_code("1234")
    assert customer.title == PAID
    assert [charge.gateway for charge in plutu.charges] == ["edfali"]


def test_callback_before_the_return_settles_the_payment(
    shop: CheckoutWorld, plutu: FakePlutu, accounts: dict[PaymentMethod, UUID]
) -> None:
    """As a form or as a query. The return of the customer changes nothing then."""
    for send in ("form", "query"):
        intent = shop.make_intent(amount=30_000)
        back = plutu.pay(_leave(shop, plutu, intent))
        url = f"{shop.url}/providers/plutu/callbacks/{accounts[PaymentMethod.CARD]}"
        parameters = parse_qsl(urlsplit(back).query)
        answer = (
            requests.post(url, data=parameters, timeout=10)
            if send == "form"
            else requests.get(url, params=parameters, timeout=10)
        )
        assert (answer.status_code, answer.json()) == (200, {"status": "taken in"})
        assert shop.status(intent) == "succeeded"
        assert "Your payment is complete" in requests.get(back, timeout=10).text
        assert shop.events(intent).count("succeeded") == 1


def test_untrusted_notifications_are_refused(
    shop: CheckoutWorld, plutu: FakePlutu, accounts: dict[PaymentMethod, UUID]
) -> None:
    """Unsigned, with a wrong key, or for another amount, attempt or account: nothing is settled."""
    intent, other = shop.make_intent(amount=30_000), shop.make_intent(amount=30_000)
    page = _leave(shop, plutu, intent)
    _leave(shop, plutu, other)
    callback = f"{shop.url}/providers/plutu/callbacks/{accounts[PaymentMethod.CARD]}"
    back, _, query = plutu.pay(page).partition("?")
    honest = parse_qsl(query)[:-1]
    smaller = [(name, "1.00" if name == "amount" else value) for name, value in honest]
    refused = [
        honest,
        signed(honest, "another key"),
        [*honest, ("hashed", signed(honest)[-1][1].lower())],
        [*signed(honest), ("approved", "1")],
    ]
    for parameters in refused:
        assert requests.post(callback, data=parameters, timeout=10).status_code == 401
        assert requests.get(f"{back}?{as_query(parameters)}", timeout=10).status_code == 200
    assert requests.post(callback, data=signed(smaller), timeout=10).status_code == 422
    # With a valid signature, but at the address of another attempt.
    elsewhere = back.rpartition("/")[0] + f"/{shop.attempt_ids(other)[0]}"
    requests.get(f"{elsewhere}?{query}", timeout=10)
    stranger = shop.make_application(NewApplication("another shop", mode=ApplicationMode.LIVE))
    of_others = f"{shop.url}/providers/plutu/callbacks/{_set_plutu(shop, PaymentMethod.CARD, stranger.id)}"
    assert requests.post(of_others, data=signed(honest), timeout=10).status_code == 404
    assert requests.post(f"{shop.url}/providers/plutu/callbacks/{uuid4()}", timeout=10).status_code == 404
    assert requests.get(f"{shop.url}/providers/plutu/returns/en/{uuid4()}", timeout=10).status_code == 404
    assert {shop.status(one) for one in (intent, other)} == {"requires_payment_method"}
    assert requests.post(callback, data=signed(honest), timeout=10).status_code == 200
    assert shop.status(intent) == "succeeded"


def test_redirect_is_abandoned_only_after_the_customer_confirms(
    shop: CheckoutWorld, plutu: FakePlutu
) -> None:
    """If it is paid after all, it is a duplicate."""
    intent = shop.make_intent(amount=30_000)
    page = _leave(shop, plutu, intent)
    customer = shop.customer(intent)
    assert customer.title == OPEN
    customer.open("lang=en&change=1")
    assert customer.title == FORM
    customer.post("", method="adfali", phone="0941234567", leave_redirect="1")
    assert customer.title == CODE
    assert shop.attempts(intent) == [("abandoned", None), ("awaiting_code", None)]
    customer.enter_code("1234")
    assert customer.title == PAID
    requests.get(plutu.pay(page), timeout=10)
    assert [state for state, _ in shop.attempts(intent)] == ["duplicate", "paid"]
    assert shop.events(intent).count("succeeded") == 1


def test_a_second_tab_cannot_abandon_the_redirect_without_confirmation(
    shop: CheckoutWorld, plutu: FakePlutu
) -> None:
    intent = shop.make_intent(amount=30_000)
    second_tab = shop.customer(intent)
    _leave(shop, plutu, intent)
    second_tab.pay_by_wallet("adfali", "0941234567")
    assert second_tab.title == OPEN
    assert shop.attempts(intent) == [("awaiting_redirect", None)]


def test_an_unknown_outcome_waits_for_an_operator(shop: CheckoutWorld, plutu: FakePlutu) -> None:
    """There is no status inquiry: the intent stays in processing, and no other attempt starts."""
    intent = shop.make_intent(amount=30_000)
    customer, second_tab = shop.customer(intent), shop.customer(intent)
    customer.pay_by_wallet("adfali", "0941234567")
    plutu.misbehaviour = replace(DROPS, works_first=True)
    customer.enter_code("1234")
    assert customer.title == PROCESSING
    assert len(plutu.charges) == 1
    second_tab.pay_by_wallet("adfali", "0941234567")
    assert second_tab.title == PROCESSING
    assert shop.rows("select state, next_verify_at from payment_attempts") == [("unknown", None)]
    with shop.database.transaction() as connection:
        settle_decision(
            connection, shop.attempt_ids(intent)[0], AttemptOutcome(ProviderAnswer.PAID, "seen in their list")
        )
    customer.open()
    assert customer.title == PAID


def test_crash_after_the_code_was_sent_leaves_the_decision_to_an_operator(shop: CheckoutWorld) -> None:
    """The verifier cannot inquire, so the attempt is unknown and not verified again."""
    intent = shop.make_intent(amount=30_000)
    shop.customer(intent).pay_by_wallet("adfali", "0941234567")
    (attempt,) = shop.attempt_ids(intent)
    with shop.database.transaction() as connection:
        connection.execute(
            """update payment_attempts set state = 'sent', provider_requests = 1, sent_at = mizan_now(),
                   next_verify_at = mizan_now() + interval '25 seconds'"""
        )
        connection.execute("update payment_intents set status = 'processing'")
    Clock(shop.database).advance(timedelta(seconds=26))
    VerificationRequests(shop.database).run_once()
    verifier = Verifier(shop.service_database, shop.dependencies.providers, shop.dependencies.side_effects)
    verifier.verify(attempt)
    assert shop.rows("select state, next_verify_at from payment_attempts") == [("unknown", None)]
    assert shop.status(intent) == "processing"


def test_amount_that_plutu_cannot_charge_has_no_method(shop: CheckoutWorld) -> None:
    """Plutu has two decimals: an intent of 25.555 has no form, only a link to the merchant."""
    customer = shop.customer(shop.make_intent(amount=25_555))
    assert "<form" not in customer.answer.text
    assert "shop.example.ly" in customer.answer.text


def test_open_payment_is_settled_with_its_account_after_a_replacement(
    shop: CheckoutWorld, plutu: FakePlutu
) -> None:
    """It was started with the old account."""
    intent = shop.make_intent(amount=30_000)
    back = plutu.pay(_leave(shop, plutu, intent))
    _set_plutu(shop, PaymentMethod.CARD, secret_key="a-new-one")
    requests.get(back, timeout=10)
    assert shop.status(intent) == "succeeded"


def test_a_new_key_may_sign_for_attempts_started_with_the_old_key(
    shop: CheckoutWorld, plutu: FakePlutu, accounts: dict[PaymentMethod, UUID]
) -> None:
    """Plutu stores one key and one URL, for all methods."""
    for send in ("the new address", "of another method"):
        intent = shop.make_intent(amount=30_000)
        back = plutu.pay(_leave(shop, plutu, intent))
        honest = parse_qsl(urlsplit(back).query)[:-1]
        new = _set_plutu(shop, PaymentMethod.CARD, secret_key="a-new-one")
        account = new if send == "the new address" else accounts[PaymentMethod.SADAD]
        url = f"{shop.url}/providers/plutu/callbacks/{account}"
        assert requests.post(url, data=signed(honest, "a-new-one"), timeout=10).status_code == 200
        assert shop.status(intent) == "succeeded"


def test_replaced_key_cannot_sign_for_new_attempts(shop: CheckoutWorld, plutu: FakePlutu) -> None:
    """It may have been replaced because it leaked."""
    for method in PaymentMethod:
        _set_plutu(shop, method, secret_key="a-new-one")
    intent = shop.make_intent(amount=30_000)
    requests.get(plutu.pay(_leave(shop, plutu, intent)), timeout=10)
    assert shop.status(intent) == "requires_payment_method"


@pytest.mark.parametrize("how", ["query", "multipart", "json"])
def test_callbacks_are_accepted_as_query_multipart_and_json(
    shop: CheckoutWorld, plutu: FakePlutu, accounts: dict[PaymentMethod, UUID], how: str
) -> None:
    intent = shop.make_intent(amount=30_000)
    parameters = parse_qsl(urlsplit(plutu.pay(_leave(shop, plutu, intent))).query)
    url = f"{shop.url}/providers/plutu/callbacks/{accounts[PaymentMethod.CARD]}"
    files = [(name, (None, value)) for name, value in parameters]
    if how == "query":
        answer = requests.post(url, params=parameters, timeout=10)
    elif how == "multipart":
        answer = requests.post(url, files=files, timeout=10)
    else:
        answer = requests.post(url, json=dict(parameters), timeout=10)
    assert answer.status_code == 200
    assert shop.status(intent) == "succeeded"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"[" * 16_000, "nested more than 100 levels deep"),
        (b'{"invoice_no": ' * 1_000, "nested more than 100 levels deep"),
        (b'{"approved": "0", "approved": "1"}', "appears more than once"),
        (b'{"amount": ' + b"9" * 5_000 + b"}", "too many digits"),
        (b"\xff", "not UTF-8"),
        (b"[]", "must be a JSON object"),
        (b"", "empty"),
    ],
    ids=["lists", "objects", "a key twice", "a long number", "no text", "a list", "nothing"],
)
def test_callback_with_unusable_json_is_422_and_says_why(
    shop: CheckoutWorld, accounts: dict[PaymentMethod, UUID], body: bytes, why: str
) -> None:
    """Anybody can send it: no signature is checked before the body is read."""
    url = f"{shop.url}/providers/plutu/callbacks/{accounts[PaymentMethod.CARD]}"
    answer = requests.post(url, data=body, headers={"Content-Type": "application/json"}, timeout=10)
    assert answer.status_code == 422
    assert why in answer.json()["message"]


def test_redirect_without_a_notification_is_listed_for_operators(
    shop: CheckoutWorld, plutu: FakePlutu
) -> None:
    """The customer paid at the bank, and neither return nor callback arrived."""
    intent = shop.make_intent(amount=30_000)
    plutu.pay(_leave(shop, plutu, intent))
    with shop.database.transaction() as connection:
        assert list_undecided(connection) == []
    Clock(shop.database).advance(timedelta(minutes=16))
    with shop.database.transaction() as connection:
        assert [one.attempt for one in list_undecided(connection)] == shop.attempt_ids(intent)


def test_link_that_expires_while_the_customer_is_at_the_bank_warns(
    shop: CheckoutWorld, plutu: FakePlutu
) -> None:
    """It says not to pay again."""
    intent = shop.make_intent(amount=30_000)
    _leave(shop, plutu, intent)
    Clock(shop.database).advance(timedelta(hours=25))
    assert "do not pay again" in shop.customer(intent).text


def test_return_while_the_database_is_unavailable_can_be_repeated(
    shop: CheckoutWorld, plutu: FakePlutu
) -> None:
    """The error page links to the same URL, with the parameters of the bank."""
    intent = shop.make_intent(amount=30_000)
    back = plutu.pay(_leave(shop, plutu, intent))
    broken = Database(
        replace(shop.settings.database, url="postgresql://nobody@127.0.0.1:1/nothing"), "checkout"
    )
    path = back.removeprefix(shop.url)
    answer = make_app(shop.settings, broken).test_client().get(path)
    broken.close()
    assert (answer.status_code, answer.mimetype) == (503, "text/html")
    assert path.replace("&", "&amp;") in answer.text


def test_settlement_is_retried_if_the_database_fails_after_the_confirmation(
    shop: CheckoutWorld, plutu: FakePlutu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plutu's response exists nowhere else."""
    intent = shop.make_intent(amount=30_000)
    customer = shop.customer(intent)
    customer.pay_by_wallet("adfali", "0941234567")
    tries: list[int] = []

    def away_at_first(
        connection: Connection[Any], request: ProviderRequest, outcome: AttemptOutcome
    ) -> SettlementResult:
        tries.append(1)
        if len(tries) < 3:
            raise DatabaseUnavailableError("it is being restarted")
        return settle_response(connection, request, outcome)

    monkeypatch.setattr(payment_service, "settle_response", away_at_first)
    customer.enter_code("1234")
    assert customer.title == PAID
    assert shop.rows("select provider_reference from payment_attempts") == [
        (plutu.charges[0].transaction_id,)
    ]


def test_account_that_cannot_be_decrypted_disables_only_its_method(shop: CheckoutWorld) -> None:
    other = SecretBox((Fernet.generate_key().decode(),))
    with shop.database.transaction() as connection:
        set_provider_account(
            connection,
            other,
            shop.application.id,
            PaymentMethod.CARD,
            provider=ProviderName.PLUTU,
            credentials=CREDENTIALS,
        )
    customer = shop.customer(shop.make_intent(amount=30_000))
    assert customer.answer.status_code == 200
    assert "Bank card" not in customer.text
    assert "Sadad" in customer.text
