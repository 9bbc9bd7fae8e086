"""Race conditions on the real database: nobody is charged twice, nothing is lost."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from html import escape
from threading import Barrier
from typing import Any

import pytest

from services.checkout.dependencies import open_database
from services.checkout.verification.verifier import Verifier
from services.scheduler.jobs.expiry import IntentExpiry
from shared.domain.intents.intent import Intent
from shared.platform.database.pool import Database
from shared.platform.settings import Settings
from tests.checkout.customer import Customer
from tests.checkout.test_payments import PAID
from tests.checkout.world import RETURN_URL, CheckoutWorld
from tests.database_roles import as_role
from tests.sandbox.running_sandbox import RunningSandbox
from tests.waiting import eventually


def at_once(actions: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run all calls at the same moment and return their results."""
    start = Barrier(len(actions))

    def begin(action: Callable[[], Any]) -> Any:
        start.wait(30)
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(begin, actions))


def assert_paid_once(world: CheckoutWorld, intent: Intent) -> None:
    assert world.status(intent) == "succeeded"
    assert world.events(intent).count("succeeded") == 1
    assert [charge["status"] for charge in world.charges(intent)].count("paid") == 1
    assert [state for state, _ in world.attempts(intent)].count("paid") == 1
    assert "duplicate" not in [state for state, _ in world.attempts(intent)]


def test_twenty_concurrent_tabs_charge_once(pages: CheckoutWorld) -> None:
    """The database allows one open attempt at a time."""
    intent = pages.make_intent()
    tabs = [pages.customer(intent) for _ in range(20)]
    at_once([partial(tab.pay_by_card, "4242424242424242") for tab in tabs])
    assert_paid_once(pages, intent)
    assert len(pages.attempts(intent)) == 1
    assert {tab.open().status_code for tab in tabs} == {200}
    assert {tab.title for tab in tabs} == {PAID}


def test_concurrent_confirmations_charge_once(pages: CheckoutWorld) -> None:
    intent = pages.make_intent()
    pages.customer(intent).pay_by_wallet("sadad", "0913632323")
    tabs = [pages.customer(intent) for _ in range(8)]
    at_once([partial(tab.enter_code, "111111") for tab in tabs])
    assert_paid_once(pages, intent)
    assert pages.rows("select provider_requests from payment_attempts") == [(1,)]


def test_concurrent_payments_with_different_methods_charge_once(pages: CheckoutWorld) -> None:
    """Cards in some tabs, codes in others: the first one pays."""
    for _ in range(5):
        intent = pages.make_intent()
        pages.customer(intent).pay_by_wallet("adfali", "0921234567")
        codes = [pages.customer(intent) for _ in range(3)]
        cards = [pages.customer(intent) for _ in range(3)]
        at_once(
            [partial(tab.enter_code, "1111") for tab in codes]
            + [partial(tab.pay_by_card, "4242424242424242") for tab in cards]
        )
        assert_paid_once(pages, intent)


def test_expiry_during_a_confirmation_is_either_paid_or_canceled(pages: CheckoutWorld) -> None:
    """Never both: a canceled intent was not charged."""
    expiry, results = IntentExpiry(pages.scheduler_database), []
    for number in range(12):
        intent = pages.make_intent()
        tab = pages.customer(intent)
        tab.pay_by_wallet("adfali", "0921234567")
        _expires_in(pages, intent, timedelta(milliseconds=10 * number))
        at_once([partial(tab.enter_code, "1111"), *[expiry.run_once] * 3])
        eventually(partial(_is_over, pages, intent, expiry))
        paid = [charge["status"] for charge in pages.charges(intent)].count("paid")
        results.append((pages.status(intent), paid))
        assert set(pages.events(intent)) & {"succeeded", "canceled"} == {pages.status(intent)}
    assert set(results) <= {("succeeded", 1), ("canceled", 0)}


def _is_over(world: CheckoutWorld, intent: Intent, expiry: IntentExpiry) -> bool:
    expiry.run_once()
    return world.status(intent) in ("succeeded", "canceled")


def _expires_in(world: CheckoutWorld, intent: Intent, left: timedelta) -> None:
    with world.database.transaction() as connection:
        connection.execute(
            "update payment_intents set expires_at = mizan_now() + %s where uuid = %s", (left, intent.uuid)
        )


def test_concurrent_notification_inquiry_and_response_settle_once(pages: CheckoutWorld) -> None:
    """All three report the same payment."""
    verifier = Verifier(pages.service_database, pages.dependencies.providers, pages.dependencies.side_effects)
    intents = [pages.make_intent() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        tabs = [pages.customer(intent) for intent in intents]
        paying = [pool.submit(tab.pay_by_card, "4000000000000077") for tab in tabs]
        charges = [eventually(partial(pages.charges, intent))[0] for intent in intents]
        attempts = [pages.attempt_ids(intent)[0] for intent in intents]
        at_once(
            [
                *[partial(pages.bank.settle, charge, "paid") for charge in charges],
                *[partial(verifier.verify, attempt) for attempt in attempts],
            ]
        )
        for one in paying:
            one.result()
    for intent in intents:
        assert_paid_once(pages, intent)


def test_a_second_payment_is_recorded_as_a_duplicate(pages: CheckoutWorld) -> None:
    """The card was declined, a wallet has paid, and then the card is paid: no second event, same receipt."""
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_card("4000000000000259")
    (first,) = pages.charges(intent)
    customer.pay_by_wallet("adfali", "0921234567")
    customer.enter_code("1111")
    for _ in range(3):  # a repeated notification changes nothing
        assert pages.bank.settle(first, "paid").json()["notified"] is True
    assert [state for state, _ in pages.attempts(intent)] == ["duplicate", "paid"]
    assert pages.events(intent).count("succeeded") == 1
    assert customer.open().status_code == 200
    assert customer.title == PAID
    assert "Adfali" in customer.text


def test_late_payment_of_a_canceled_intent_succeeds(pages: CheckoutWorld) -> None:
    """§3: canceled → succeeded, with its event."""
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_card("4000000000000259")
    _expires_in(pages, intent, timedelta())
    IntentExpiry(pages.scheduler_database).run_once()
    customer.open()
    assert customer.title == "This payment link has expired"
    pages.bank.settle(pages.charges(intent)[0], "paid")
    assert pages.status(intent) == "succeeded"
    assert [event for event in pages.events(intent) if event in ("canceled", "succeeded")] == [
        "canceled",
        "succeeded",
    ]


def test_no_attempt_starts_after_the_expiry(pages: CheckoutWorld) -> None:
    """From expires_at on, no attempt or code is accepted, even before the scheduler runs. The page links back."""
    intent, other = pages.make_intent(), pages.make_intent()
    form, code = pages.customer(intent), pages.customer(other)
    code.pay_by_wallet("adfali", "0921234567")
    for one in (intent, other):
        _expires_in(pages, one, timedelta())
    form.pay_by_card("4242424242424242")
    code.enter_code("1111")
    for shown in (form, code):
        assert shown.title == "This payment link has expired"
        assert f'href="{escape(RETURN_URL)}"' in shown.answer.text
    assert pages.attempts(intent) == []
    assert pages.charges(intent) == []
    assert [charge["status"] for charge in pages.charges(other)] == ["needs_code"]


@pytest.fixture
def patient_pages(settings: Settings, database: Database, bank: RunningSandbox) -> Iterator[CheckoutWorld]:
    """Pages that refuse no customer, however busy the machine is."""
    patient = replace(settings.database, pool_timeout_s=60.0)
    with closing(open_database(as_role("mizan_checkout", patient))) as service_database:
        world = CheckoutWorld(settings, database, service_database, bank)
        world.settings = replace(
            world.settings, checkout=replace(world.settings.checkout, provider_timeout_s=60.0)
        )
        with world.serve():
            yield world
        world.close()


@pytest.mark.parametrize("number", [40, pytest.param(200, marks=pytest.mark.long)])
def test_many_concurrent_customers_are_each_charged_once(patient_pages: CheckoutWorld, number: int) -> None:
    pages = patient_pages
    intents = [pages.make_intent() for _ in range(number)]

    def pay(intent: Intent) -> Customer:
        customer = pages.customer(intent)
        customer.pay_by_card("4242424242424242")
        customer.close()
        return customer

    with ThreadPoolExecutor(50) as pool:
        customers = list(pool.map(pay, intents))
    assert {customer.title for customer in customers} == {PAID}
    assert pages.rows("select status, count(*) from payment_intents group by 1") == [("succeeded", number)]
    assert pages.rows("select state, count(*) from payment_attempts group by 1") == [("paid", number)]
