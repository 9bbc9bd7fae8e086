"""`mizan pay`: through the real checkout over HTTP, with the sandbox as a real process."""

import json
from pathlib import Path

import pytest
from click.testing import Result

from shared.domain.applications.registry import NewApplication
from shared.domain.intents.intent import Intent
from shared.domain.payment_methods import PaymentMethod
from stack.ports import find_free_ports
from tests.checkout.test_sandbox_pay import fake_checkout
from tests.checkout.world import CheckoutWorld
from tests.mizan.conftest import Mizan
from tests.sandbox.running_sandbox import SECRET, RunningSandbox

GOOD_CARD = "4242424242424242"
SILENT_CARD = "4000000000000077"


@pytest.fixture
def pay(run: Mizan, pages: CheckoutWorld) -> Mizan:
    """Run `mizan pay …` with the settings of a stack with a sandbox."""

    def call(intent: Intent | str, *words: str, **more: str) -> Result:
        name = intent if isinstance(intent, str) else str(intent.uuid)
        given = {"SANDBOX_SECRET": SECRET, "CHECKOUT_PUBLIC_URL": pages.url}
        return run("pay", name, *words, **{**given, **more})

    return call


def test_intent_is_paid_by_card(pages: CheckoutWorld, pay: Mizan) -> None:
    """By its uuid or the merchant's reference. One charge is made."""
    first, second = pages.make_intent(), pages.make_intent()
    answer = pay(first, "--card", GOOD_CARD, "--json")
    assert answer.exit_code == 0, answer.stderr
    assert json.loads(answer.stdout) == {"uuid": str(first.uuid), "status": "succeeded", "method": "card"}
    assert pay(second.merchant_reference, "--card", "4242 4242 4242 4242").exit_code == 0
    for intent in (first, second):
        assert pages.status(intent) == "succeeded"
        assert [charge["status"] for charge in pages.charges(intent)] == ["paid"]


@pytest.mark.parametrize(
    "words",
    [
        ("--card", "6395043835180860"),
        ("--wallet", "sadad", "--phone", "0913632323"),
        ("--wallet", "sadad", "--phone", "0913632323", "--birth-year", "1999", "--code", "111111"),
        ("--wallet", "adfali", "--phone", "0921234567"),
    ],
)
def test_code_is_entered_if_the_method_asks_for_one(
    pages: CheckoutWorld, pay: Mizan, words: tuple[str, ...]
) -> None:
    """Without --code it is the right one."""
    intent = pages.make_intent()
    answer = pay(intent, *words)
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert "succeeded" in answer.stdout
    assert pages.status(intent) == "succeeded"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--card", "4000000000000002"), "The payment was declined."),
        (("--card", "4000000000009995"), "There is not enough money in this account."),
        (("--card", "4242424242424241"), "This card number is not right."),
        (("--card", GOOD_CARD, "--expiry", "01/20"), "This card has expired."),
        (("--wallet", "adfali", "--phone", "0921234567", "--code", "9999"), "This code is not right."),
        (("--wallet", "adfali", "--phone", "0921234567", "--code", "1"), "a different number of digits"),
        (("--wallet", "adfali", "--phone", "0921234995"), "There is not enough money"),
        (("--wallet", "adfali", "--phone", "0921234000"), "is not registered with the wallet"),
        (("--wallet", "adfali", "--phone", "0971234567"), "Adfali takes 091 to 096 numbers only."),
        (("--wallet", "sadad", "--phone", "0913632323", "--birth-year", "1980"), "with this birth year"),
    ],
)
def test_failed_payment_says_why(pages: CheckoutWorld, pay: Mizan, words: tuple[str, ...], told: str) -> None:
    """In one line with the words of the page. The intent can be paid afterwards, also with another method."""
    intent = pages.make_intent()
    answer = pay(intent, *words)
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr.startswith("Error: not paid: ")
    assert told in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert "did not go through" not in answer.stderr  # the title, which gives no reason
    assert pages.status(intent) == "requires_payment_method"
    assert pay(intent, "--card", GOOD_CARD).exit_code == 0


def test_result_of_a_payment_that_times_out_is_waited_for(pages: CheckoutWorld, pay: Mizan) -> None:
    intent = pages.make_intent()
    with pages.verifying():
        answer = pay(intent, "--card", SILENT_CARD)
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert pages.status(intent) == "succeeded"


def test_payment_that_is_still_being_confirmed_is_no_success(pages: CheckoutWorld, pay: Mizan) -> None:
    """Nobody asks for its status here. It is not paid a second time."""
    intent = pages.make_intent()
    answer = pay(intent, "--card", SILENT_CARD, "--wait", "0")
    assert answer.exit_code == 1
    assert "the payment is still being confirmed after 0 seconds" in answer.stderr
    again = pay(intent, "--card", GOOD_CARD)
    assert again.exit_code == 1
    assert "a payment of this intent is being confirmed" in again.stderr


def test_intent_that_cannot_be_paid_is_refused(pages: CheckoutWorld, pay: Mizan) -> None:
    paid, expired, canceled = pages.make_intent(), pages.make_intent(), pages.make_intent()
    assert pay(paid, "--card", GOOD_CARD).exit_code == 0
    for intent in (expired, canceled):
        pages.rows(
            "update payment_intents set expires_at = mizan_now() where uuid = %s returning 1", intent.uuid
        )
    pages.rows("update payment_intents set status = 'canceled' where uuid = %s returning 1", canceled.uuid)
    for name, told in {
        str(paid.uuid): "not paid again: this intent is already paid",
        str(expired.uuid): "not paid: This payment link has expired",
        str(canceled.uuid): "not paid: this intent has expired and is canceled",
        "019b3c5e-6f1a-7c40-9d27-5b8e0c4a1f63": "no intent has this uuid",
    }.items():
        answer = pay(name, "--card", GOOD_CARD)
        assert answer.exit_code == 1
        assert told in answer.stderr
    assert len(pages.charges(paid)) == 1
    assert not pages.charges(expired)


def test_method_that_the_application_does_not_have_is_refused(pages: CheckoutWorld, pay: Mizan) -> None:
    only_card = pages.make_application(NewApplication("cards only", methods=frozenset({PaymentMethod.CARD})))
    intent = pages.make_intent(application_id=only_card.id)
    answer = pay(intent, "--wallet", "adfali", "--phone", "0921234567")
    assert answer.exit_code == 1
    assert "this intent can only be paid by card" in answer.stderr


def test_page_that_does_not_say_test_is_refused_and_nothing_is_submitted(
    pages: CheckoutWorld, pay: Mizan
) -> None:
    with fake_checkout('<body data-mode="live">') as (url, methods):
        answer = pay(pages.make_intent(), "--card", GOOD_CARD, CHECKOUT_PUBLIC_URL=url)
    assert (answer.exit_code, methods) == (1, ["GET"])
    assert "not of a test application" in answer.stderr


def test_only_the_sandbox_is_paid(pages: CheckoutWorld, pay: Mizan) -> None:
    """Refused without a sandbox, in production, and for a live application."""
    intent = pages.make_intent()
    card = ("--card", GOOD_CARD)
    assert "this stack has no sandbox" in pay(intent, *card, SANDBOX_SECRET="").stderr
    production = pay(intent, *card, MIZAN_ENV="production", MIZAN_SECRET_KEYS="")
    assert "this command is for development" in production.stderr
    pages.use_live_application()
    intent = pages.make_intent()
    answer = pay(intent, *card)
    assert answer.exit_code == 1
    assert "refused: this is a live application" in answer.stderr
    assert pages.attempts(intent) == []


def test_checkout_that_is_not_there_is_named(pages: CheckoutWorld, pay: Mizan) -> None:
    url = f"http://127.0.0.1:{find_free_ports(1)[0]}"
    answer = pay(pages.make_intent(), "--card", GOOD_CARD, CHECKOUT_PUBLIC_URL=url)
    assert answer.exit_code == 1
    assert answer.stderr.startswith(f"Error: the checkout at {url} cannot be reached")


def test_checkout_of_another_stack_is_named(pages: CheckoutWorld, pay: Mizan, bank: RunningSandbox) -> None:
    """It does not know the intent."""
    url = f"http://127.0.0.1:{bank.port}"
    answer = pay(pages.make_intent(), "--card", GOOD_CARD, CHECKOUT_PUBLIC_URL=url)
    assert answer.exit_code == 1
    assert f"the checkout at {url} does not know this intent" in answer.stderr


@pytest.mark.parametrize(
    "words",
    [(), ("--card", GOOD_CARD, "--wallet", "sadad", "--phone", "0913632323"), ("--wallet", "sadad")],
)
def test_incomplete_options_are_refused(run: Mizan, words: tuple[str, ...]) -> None:
    assert run("pay", "some-intent", *words).exit_code == 2


def test_checkout_of_a_running_stack_is_found(pages: CheckoutWorld, run: Mizan, tmp_path: Path) -> None:
    """Its address and its sandbox are in stack.json."""
    intent = pages.make_intent()
    (tmp_path / "secret").write_text(SECRET)
    stack = {"checkout_public_url": pages.url, "sandbox_secret_file": str(tmp_path / "secret")}
    (tmp_path / "stack.json").write_text(json.dumps(stack))
    given = dict.fromkeys(("CHECKOUT_PUBLIC_URL", "SANDBOX_SECRET", "SANDBOX_SECRET_FILE"))
    answer = run("pay", str(intent.uuid), "--card", GOOD_CARD, **given)
    assert (answer.exit_code, answer.stderr) == (0, "")
