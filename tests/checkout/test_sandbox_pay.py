"""`POST {sandbox}/pay`: for test suites of merchants. It pays at the real checkout, as a customer does."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from werkzeug.test import TestResponse

from services.sandbox.app import make_app
from services.sandbox.checkout_client import CheckoutClient
from shared.domain.intents.intent import Intent
from shared.platform.settings import SandboxSettings
from stack.ports import find_free_ports
from tests.checkout.world import CheckoutWorld
from tests.sandbox.running_sandbox import SECRET

GOOD_CARD = "4242424242424242"

Pay = Callable[..., TestResponse]


@pytest.fixture
def pay(pages: CheckoutWorld, tmp_path: Path) -> Pay:
    """Request a payment of an intent. `checkout_url` is another checkout."""

    def call(intent: Intent | str, *, checkout_url: str = pages.url, **fields: Any) -> TestResponse:
        app = make_app(SandboxSettings(secret=SECRET, ledger=tmp_path / "ledger"), checkout_url, None)
        uuid = intent if isinstance(intent, str) else str(intent.uuid)
        return app.test_client().post("/pay", json={"intent": uuid, **fields})

    return call


@pytest.mark.parametrize(
    "fields",
    [
        {"card": GOOD_CARD},
        {"card": "6395043835180860", "expiry": "11/39", "security_code": "777", "code": "111111"},
        {"wallet": "sadad", "phone": "0913632323"},
        {"wallet": "sadad", "phone": "0913632323", "birth_year": "1999"},
        {"wallet": "adfali", "phone": "0921234567", "code": "1111"},
    ],
)
def test_intent_is_paid(pages: CheckoutWorld, pay: Pay, fields: dict[str, str]) -> None:
    intent = pages.make_intent()
    response = pay(intent, **fields)
    assert (response.status_code, response.json) == (200, {"intent": str(intent.uuid), "status": "succeeded"})
    assert pages.status(intent) == "succeeded"
    assert [charge["status"] for charge in pages.charges(intent)] == ["paid"]


def test_declined_payment_is_402_and_says_why(pages: CheckoutWorld, pay: Pay) -> None:
    intent = pages.make_intent()
    response = pay(intent, card="4000000000000002")
    assert response.status_code == 402
    assert response.json is not None
    assert response.json["message"].startswith("not paid: The payment was declined.")
    assert pages.status(intent) == "requires_payment_method"


def test_paid_intent_is_not_paid_again(pages: CheckoutWorld, pay: Pay) -> None:
    intent = pages.make_intent()
    assert pay(intent, card=GOOD_CARD).status_code == 200
    assert pay(intent, card=GOOD_CARD).status_code == 402
    assert len(pages.charges(intent)) == 1


def test_unknown_intent_is_404(pay: Pay) -> None:
    response = pay(str(uuid4()), card=GOOD_CARD)
    assert response.status_code == 404
    assert "does not know this intent" in response.text


def test_checkout_that_is_not_there_is_502(pay: Pay) -> None:
    url = f"http://127.0.0.1:{find_free_ports(1)[0]}"
    response = pay(str(uuid4()), card=GOOD_CARD, checkout_url=url)
    assert response.status_code == 502
    assert f"the checkout at {url} cannot be reached" in response.text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "Give either card or wallet."),
        ({"card": GOOD_CARD, "wallet": "adfali", "phone": "0921234567"}, "Give either card or wallet."),
        ({"wallet": "adfali"}, "phone: A wallet needs it."),
        ({"wallet": "card", "phone": "0921234567"}, "wallet: "),
        ({"card": GOOD_CARD, "phone": "0921234567"}, "phone: Not a field of this method."),
        ({"wallet": "adfali", "phone": "0921234567", "expiry": "12/40"}, "expiry: Not a field of"),
        ({"card": GOOD_CARD, "cvc": "123"}, "cvc: Unknown field."),
        ({"card": int(GOOD_CARD)}, "card: Not a valid string."),
        ({"card": "4" * 101}, "card: "),
        ({"intent": "no-uuid", "card": GOOD_CARD}, "intent: Not a valid UUID."),
    ],
)
def test_invalid_request_is_422_and_names_the_field(pay: Pay, fields: dict[str, Any], message: str) -> None:
    response = pay(fields.pop("intent", str(uuid4())), **fields)
    assert response.status_code == 422
    assert response.json is not None
    assert message in response.json["message"]
    assert GOOD_CARD not in response.text


def test_number_of_payments_at_one_time_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the checkout's charges would find no free thread of the sandbox."""
    finish = Event()

    def wait(*_arguments: object) -> None:
        assert finish.wait(30)

    monkeypatch.setattr(CheckoutClient, "pay", wait)
    app = make_app(SandboxSettings(secret=SECRET, ledger=tmp_path / "ledger"), "http://127.0.0.1:1", None)
    body = {"intent": str(uuid4()), "card": GOOD_CARD}
    with ThreadPoolExecutor(33) as callers:
        calls = [callers.submit(lambda: app.test_client().post("/pay", json=body)) for _ in range(33)]
        refused = next(as_completed(calls, timeout=30))
        finish.set()
    assert refused.result().status_code == 429
    assert sorted(call.result().status_code for call in calls) == [200] * 32 + [429]
    assert app.test_client().post("/pay", json=body).status_code == 200
