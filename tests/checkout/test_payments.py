"""A customer pays: every method and outcome of the sandbox (DESIGN §4), from the page to the intent."""

from dataclasses import replace
from functools import partial

import pytest

from shared.domain.attempts.decision_rules import OperatorDecision
from shared.domain.attempts.settlement import settle_decision
from shared.domain.intents.intent import Intent
from tests.checkout.world import CheckoutWorld
from tests.waiting import eventually

PAID = "Your payment is complete"
CODE = "Enter the code"
FORM = "How would you like to pay?"
PROCESSING = "Your payment is being confirmed"


def test_a_card_is_charged_once(pages: CheckoutWorld) -> None:
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_card("4242 4242 4242 4242")
    assert customer.title == PAID
    assert pages.status(intent) == "succeeded"
    assert pages.attempts(intent) == [("paid", None)]
    assert [(charge["amount"], charge["status"]) for charge in pages.charges(intent)] == [(25_500, "paid")]
    assert pages.events(intent) == ["created", "processing", "succeeded"]


def test_paid_intent_shows_its_receipt_and_never_a_form(pages: CheckoutWorld) -> None:
    intent = pages.make_intent()
    pages.customer(intent).pay_by_card("4242424242424242")
    later = pages.customer(intent)
    assert later.title == PAID
    assert intent.reference.upper() in later.text
    assert "<form" not in later.answer.text
    later.open("lang=en&change=1")
    assert later.title == PAID
    assert "<form" not in later.answer.text


def test_second_tab_charges_nothing_after_the_first_has_paid(pages: CheckoutWorld) -> None:
    """Its open form leads to the receipt."""
    intent = pages.make_intent()
    first, second = pages.customer(intent), pages.customer(intent)
    first.pay_by_card("4242424242424242")
    second.pay_by_card("4242424242424242")
    assert second.title == PAID
    assert pages.attempts(intent) == [("paid", None)]
    assert len(pages.charges(intent)) == 1


@pytest.mark.parametrize(
    ("number", "sentence", "reason"),
    [
        ("4000000000000002", "The payment was declined.", "declined"),
        ("4000000000009995", "There is not enough money in this account.", "insufficient_funds"),
        ("4000000000000259", "The payment was declined.", "declined"),
    ],
)
def test_declined_card_can_be_followed_by_another(
    pages: CheckoutWorld, number: str, sentence: str, reason: str
) -> None:
    """No event is sent, and the customer may try again."""
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_card(number)
    assert customer.title == FORM
    assert sentence in customer.text
    assert pages.attempts(intent) == [("declined", reason)]
    assert pages.status(intent) == "requires_payment_method"
    customer.pay_by_card("4242424242424242")
    assert customer.title == PAID


def test_card_with_a_code_is_paid(pages: CheckoutWorld) -> None:
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_card("6395 0438 3518 0860")
    assert customer.title == CODE
    customer.enter_code("000000")
    assert customer.title == CODE
    assert "This code is not right." in customer.text
    customer.enter_code("١١١ ١١١")
    assert customer.title == PAID
    assert [charge["status"] for charge in pages.charges(intent)] == ["paid"]


@pytest.mark.parametrize(
    ("method", "phone", "wrong", "right"),
    [("sadad", "0913632323", "222222", "111111"), ("adfali", "0921234567", "2222", "1111")],
)
def test_wallet_is_paid_with_its_code(
    pages: CheckoutWorld, method: str, phone: str, wrong: str, right: str
) -> None:
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_wallet(method, phone)
    assert customer.title == CODE
    assert phone not in customer.answer.text
    customer.enter_code(wrong)
    assert "This code is not right." in customer.text
    customer.enter_code(right)
    assert customer.title == PAID
    assert pages.attempts(intent) == [("paid", None)]


@pytest.mark.parametrize(
    ("method", "phone", "code"), [("sadad", "0913632323", "111111"), ("adfali", "0921234567", "1111")]
)
def test_declined_wallets_say_why_and_another_one_pays(
    pages: CheckoutWorld, method: str, phone: str, code: str
) -> None:
    """An unknown phone is refused at once, one without funds after the code."""
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_wallet(method, "0912345000")
    assert "This phone number is not registered with the wallet." in customer.text
    assert f'value="{method}" checked' in customer.answer.text
    customer.pay_by_wallet(method, "0912345995")
    customer.enter_code(code)
    assert customer.title == FORM
    assert "There is not enough money in this account." in customer.text
    customer.pay_by_wallet(method, phone)
    customer.enter_code(code)
    assert customer.title == PAID
    assert pages.attempts(intent) == [
        ("declined", "not_subscribed"),
        ("declined", "insufficient_funds"),
        ("paid", None),
    ]


def test_payment_without_a_response_is_settled_by_the_verifier(world: CheckoutWorld) -> None:
    """Meanwhile the page says that the payment is being confirmed."""
    world.wait_briefly_for_providers()
    ends = {
        "4000000000000077": ("succeeded", ("paid", None)),
        "4000000000000341": ("requires_payment_method", ("declined", "declined")),
    }
    intents = {number: world.make_intent() for number in ends}
    with world.serve():
        for number, intent in intents.items():
            customer, second_tab = world.customer(intent), world.customer(intent)
            customer.pay_by_card(number)
            assert customer.title == PROCESSING
            assert world.status(intent) == "processing"
            second_tab.pay_by_card("4242424242424242")
            assert second_tab.title == PROCESSING
        with world.verifying():
            for number, intent in intents.items():
                eventually(partial(_has_status, world, intent, ends[number][0]))
    for number, intent in intents.items():
        assert world.attempts(intent) == [ends[number][1]]
        assert len(world.charges(intent)) == 1


def _has_status(world: CheckoutWorld, intent: Intent, status: str) -> bool:
    return world.status(intent) == status


def test_late_notification_settles_a_declined_payment(pages: CheckoutWorld) -> None:
    """It is signed and says paid. Nobody is charged again."""
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_card("4000000000000259")
    (charge,) = pages.charges(intent)
    assert pages.bank.settle(charge, "paid").json()["notified"] is True
    assert pages.status(intent) == "succeeded"
    customer.pay_by_card("4242424242424242")
    assert customer.title == PAID
    assert [charge["status"] for charge in pages.charges(intent)] == ["paid"]


def test_late_notification_replaces_the_reference_that_an_operator_typed(world: CheckoutWorld) -> None:
    """The operator decided without the bank's reference at hand. The customer was charged once."""
    world.wait_briefly_for_providers()
    intent = world.make_intent()
    with world.serve():
        world.customer(intent).pay_by_card("4000000000000077")
        (attempt,) = world.attempt_ids(intent)
        decision = OperatorDecision(is_paid=True, reason="on the bank's statement", reference="typed")
        with world.database.transaction() as connection:
            settle_decision(connection, attempt, decision.outcome())
        (charge,) = world.charges(intent)
        assert world.bank.settle(charge, "paid").json()["notified"] is True
    assert world.rows("select state, provider_reference from payment_attempts") == [("paid", charge["id"])]


def test_bank_notifies_the_internal_address_if_one_is_set(world: CheckoutWorld) -> None:
    """In a container, the public address of development is the container itself."""
    assert world.settings.sandbox is not None
    world.settings = replace(
        world.settings,
        public_urls=replace(world.settings.public_urls, checkout="http://127.0.0.1:1"),
        sandbox=replace(world.settings.sandbox, notify_url=world.url),
    )
    with world.serve():
        intent = world.make_intent()
        world.customer(intent).pay_by_card("4000000000000259")
        (charge,) = world.charges(intent)
        assert world.bank.settle(charge, "paid").json()["notified"] is True
        assert world.status(intent) == "succeeded"
