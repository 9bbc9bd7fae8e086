"""Verifies webhooks."""

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from .errors import InvalidWebhookError, SignatureError
from .payment_intent import is_uuid


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    id: str
    """Id of the delivery, the same in every retry. Store it, and ignore events that you have already stored."""
    event: str
    """`payment_intent.succeeded` or `payment_intent.canceled`. Respond with 2xx to events that you do not know."""
    intent_uuid: str
    """Retrieve this intent. The event itself has neither amount nor status."""


def verify_webhook(raw_body: bytes, signature: str | None, secrets: str | Sequence[str]) -> WebhookEvent:
    """Check the signature of a webhook and return its event. Nothing is parsed before the signature is valid.

    `raw_body` are the bytes of the request, `signature` is its header Service-Signature (None if it is missing), and
    `secrets` are the webhook secret and, for a day after a roll, also the old one.

    Raises SignatureError if no secret made the signature, and InvalidWebhookError if the signed body is not an event.
    Raises ValueError if there is no secret or an empty one: anybody could sign with that.
    """
    if not isinstance(raw_body, bytes):
        raise TypeError("raw_body must be bytes: the body as it was received, before anything parses it")
    accepted = [secrets] if isinstance(secrets, str) else list(secrets)
    if not accepted or not all(accepted):
        raise ValueError("there must be a webhook secret, and none may be empty")
    if not signature:
        raise SignatureError("The header Service-Signature is missing.")
    given = signature.encode(errors="replace")  # compare_digest takes only ASCII as text
    if not any(hmac.compare_digest(_sign(raw_body, secret), given) for secret in accepted):
        raise SignatureError("The signature does not match.")
    return _parse_event(raw_body)


def _sign(raw_body: bytes, secret: str) -> bytes:
    return hmac.new(secret.encode(), raw_body, hashlib.sha256).hexdigest().encode()


def _parse_event(raw_body: bytes) -> WebhookEvent:
    try:
        body = json.loads(raw_body.decode(), parse_constant=_refuse_constant)
        event = WebhookEvent(body["id"], body["event"], body["data"]["uuid"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidWebhookError("The body is not an event.") from error
    if not (_is_filled(event.id) and _is_filled(event.event) and is_uuid(event.intent_uuid)):
        raise InvalidWebhookError("The body is not an event.")
    return event


def _is_filled(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(name)
