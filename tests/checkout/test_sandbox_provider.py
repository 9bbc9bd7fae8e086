"""The sandbox as a provider: whatever it sends that is no charge is no usable response, never an error."""

import hashlib
import hmac
import json
from uuid import uuid4

import pytest

from services.checkout.providers.interface import Card, PaymentRequest, UntrustedNotificationError
from services.checkout.providers.sandbox import SandboxProvider, read_notification
from shared.domain.attempts.states import ProviderAnswer
from shared.domain.payment_methods import PaymentMethod
from shared.platform.settings import SandboxSettings
from tests.checkout.test_http_client import listening, with_body

SECRET = "a-secret-of-the-sandbox"
CARD = Card("4242424242424242", 12, 2034, "123")
PAID = {
    "charge": "ch_1",
    "attempt": str(uuid4()),
    "intent": str(uuid4()),
    "amount": 1000,
    "currency": "LYD",
    "status": "paid",
}


def start(body: bytes) -> ProviderAnswer:
    """Return the provider's answer to the start of a card payment that the sandbox answers with this body."""
    payment = PaymentRequest(uuid4(), uuid4(), PaymentMethod.CARD, 1000, "LYD", "en", lambda: False)
    with listening(with_body(body, "201 Created")) as url:
        provider = SandboxProvider(SandboxSettings(url=url, secret=SECRET), "http://127.0.0.1/", 5.0)
        return provider.start(payment, CARD).outcome.answer


def test_charge_is_read() -> None:
    assert start(b'{"id": "ch_1", "status": "paid"}') is ProviderAnswer.PAID


@pytest.mark.parametrize(
    "body",
    [
        b'{"id": "ch_1", "status": ["paid"]}',
        b'{"id": "ch_1", "status": {"paid": 1}}',
        b'{"id": "ch_1", "status": "charged"}',
        b'{"id": "ch_1", "status": "declined", "status": "paid"}',
        b'{"id": "ch\\u0000", "status": "paid"}',
        b'{"id": "\\ud800", "status": "paid"}',
        b'{"id": "' + b"x" * 300 + b'", "status": "paid"}',
        b'{"id": 1, "status": "paid"}',
        b'{"status": "paid"}',
    ],
    ids=range(9),
)
def test_response_that_is_no_charge_leaves_the_outcome_unknown(body: bytes) -> None:
    """The customer may have been charged, so it is verified later."""
    assert start(body) is ProviderAnswer.UNKNOWN


def signed(body: bytes) -> tuple[bytes, str, str]:
    return body, hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest(), SECRET


def test_signed_notification_is_read() -> None:
    assert read_notification(*signed(json.dumps(PAID).encode())).charge == "ch_1"


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 16_000,
        b'{"more": ' + b"[" * 16_000,
        json.dumps(PAID).encode().replace(b"{", b'{"status": "declined", '),
        json.dumps({**PAID, "charge": "ch\0"}).encode(),
        json.dumps({**PAID, "amount": "1000"}).encode(),
        b"\xff",
    ],
    ids=["deep", "deep in a field", "a key twice", "NUL", "text as amount", "no text"],
)
def test_notification_with_an_unusable_body_is_refused_even_if_signed(body: bytes) -> None:
    with pytest.raises(UntrustedNotificationError):
        read_notification(*signed(body))
