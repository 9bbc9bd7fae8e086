"""One-time codes: five tries, limits for an intent and a phone, ten minutes, and all of it in the database."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from services.checkout.codes import SEND_AGAIN_AFTER_S, TRIES, VALID_S
from services.checkout.limits import CODES_PER_INTENT
from tests.checkout.test_paying import CODE, FORM, PAID
from tests.checkout.world import CheckoutWorld
from tests.clock import Clock

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def still(pages: CheckoutWorld) -> Clock:
    """The clock stands still until a test turns it."""
    clock = Clock(pages.database)
    clock.stop_at(NOW)
    return clock


def test_five_wrong_codes_end_the_attempt(pages: CheckoutWorld) -> None:
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_wallet("adfali", "0921234567")
    for _ in range(TRIES - 1):
        customer.enter_code("2222")
        assert customer.title == CODE
    customer.enter_code("2222")
    assert customer.title == FORM
    assert "Too many wrong codes." in customer.text
    assert pages.attempts(intent) == [("declined", "too_many_codes")]


def test_five_tries_also_when_they_come_at_once(pages: CheckoutWorld) -> None:
    """Twenty at the same moment: never more than five reach the wallet."""
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_wallet("adfali", "0921234567")
    tabs = [pages.customer(intent) for _ in range(20)]
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda tab: tab.enter_code("2222"), tabs))
    (tried,) = pages.rows("select codes_tried from code_challenges")[0]
    assert 1 <= tried <= TRIES
    assert pages.rows("select max(sendings) from payment_attempts")[0][0] == tried


def test_a_code_is_good_for_ten_minutes(pages: CheckoutWorld, still: Clock) -> None:
    intent = pages.make_intent(expires_at=NOW + timedelta(hours=2))
    customer = pages.customer(intent)
    customer.pay_by_wallet("sadad", "0913632323")
    still.stop_at(NOW + timedelta(seconds=VALID_S))
    customer.enter_code("111111")
    assert customer.title == CODE
    assert "no longer valid" in customer.text
    assert pages.status(intent) == "requires_payment_method"
    customer.send_again()
    customer.enter_code("111111")
    assert customer.title == PAID


def test_sent_again_after_a_pause(pages: CheckoutWorld, still: Clock) -> None:
    intent = pages.make_intent(expires_at=NOW + timedelta(hours=2))
    customer = pages.customer(intent)
    customer.pay_by_wallet("sadad", "0913632323")
    assert customer.send_again().status_code == 429
    assert "sent a moment ago" in customer.text
    still.stop_at(NOW + timedelta(seconds=SEND_AGAIN_AFTER_S))
    assert customer.send_again().status_code == 200
    assert customer.title == CODE
    assert pages.rows("select codes_sent from code_challenges") == [(2,)]
    assert customer.send_again().status_code == 429
    customer.enter_code("111111")
    assert customer.title == PAID


def test_sent_again_once_when_asked_twice_at_once(pages: CheckoutWorld, still: Clock) -> None:
    intent = pages.make_intent(expires_at=NOW + timedelta(hours=2))
    pages.customer(intent).pay_by_wallet("sadad", "0913632323")
    still.stop_at(NOW + timedelta(seconds=SEND_AGAIN_AFTER_S))
    tabs = [pages.customer(intent) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda tab: tab.send_again().status_code, tabs))
    assert sorted(answers) == [200, *[429] * 7]
    assert pages.rows("select codes_sent from code_challenges") == [(2,)]


def test_a_try_does_not_come_back_with_a_new_code(pages: CheckoutWorld, still: Clock) -> None:
    intent = pages.make_intent(expires_at=NOW + timedelta(hours=2))
    customer = pages.customer(intent)
    customer.pay_by_wallet("adfali", "0921234567")
    for _ in range(TRIES - 1):
        customer.enter_code("2222")
    still.stop_at(NOW + timedelta(seconds=SEND_AGAIN_AFTER_S))
    customer.send_again()
    customer.enter_code("2222")
    assert pages.attempts(intent) == [("declined", "too_many_codes")]


def test_limit_for_an_intent(pages: CheckoutWorld) -> None:
    """With as many phones as one likes."""
    customer = pages.customer(pages.make_intent())
    for number in range(CODES_PER_INTENT):
        assert customer.pay_by_wallet("adfali", f"092123456{number}").status_code == 200
        customer.open("lang=en&change=1")
    answer = customer.pay_by_wallet("adfali", "0921111111")
    assert answer.status_code == 429
    assert "Too many codes were sent." in customer.text


def test_limit_for_a_phone(world: CheckoutWorld) -> None:
    """Over all intents; forgotten once its owner has paid, and after an hour."""
    world.settings = replace(world.settings, checkout=replace(world.settings.checkout, codes_per_phone=2))
    clock = Clock(world.database)
    clock.stop_at(NOW)

    def send_code(phone: str = "0921234567") -> int:
        intent = world.make_intent(expires_at=clock_now + timedelta(hours=1))
        return world.customer(intent).pay_by_wallet("adfali", phone).status_code

    with world.serving():
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


def test_the_phone_is_kept_encrypted_until_it_is_paid(pages: CheckoutWorld) -> None:
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_wallet("sadad", "0913632323")
    ((hint, sealed),) = pages.rows("select phone_hint, sealed_phone from code_challenges")
    assert hint == "323"
    assert "0913632323" not in sealed
    customer.enter_code("111111")
    assert pages.rows("select sealed_phone from code_challenges") == [(None,)]


def test_a_code_of_another_tab_is_not_taken(pages: CheckoutWorld) -> None:
    """The number was changed in a second tab: the first one's code is for nobody any more."""
    intent = pages.make_intent()
    first = pages.customer(intent)
    first.pay_by_wallet("adfali", "0921234567")
    second = pages.customer(intent)
    second.open("lang=en&change=1")
    second.pay_by_wallet("adfali", "0921234995")
    first.enter_code("1111")
    assert first.title == CODE
    assert pages.attempts(intent) == [("abandoned", None), ("awaiting_code", None)]
    assert [charge["status"] for charge in pages.charges(intent)] == ["needs_code", "needs_code"]


def test_too_many_attempts(pages: CheckoutWorld) -> None:
    """Nobody tries out a list of cards on one intent."""
    customer = pages.customer(pages.make_intent())
    statuses = [customer.pay_by_card("4000000000000002").status_code for _ in range(21)]
    assert statuses == [*[200] * 20, 429]
    assert "too many attempts" in customer.text
