"""A webhook as a receiver saw it: its body read, and the secret that signed it found."""

import json
from dataclasses import dataclass
from typing import Any

from chaos.history import WebhookReceived
from chaos.judge.applications import Application, Period

SUCCEEDED = "payment_intent.succeeded"
CANCELED = "payment_intent.canceled"
EVENTS = (SUCCEEDED, CANCELED)


@dataclass(frozen=True, slots=True)
class Receipt:
    at: float
    application: str
    """Of the URL that it came to."""
    url: str
    connection: int
    answer: str
    http_status: int | None
    """What the receiver answered; None if it did not answer, or not at once."""
    id: str | None
    """The delivery; None if the body has none."""
    event: str
    uuid: str
    problem: str | None
    """How the body differs from §2.2; None if it does not."""
    secret: Period | None
    """The secret that signed it; None if it is not one of the application's known secrets."""


def read_receipt(webhook: WebhookReceived, application: Application | None) -> Receipt:
    """Return what a receiver can read in the request. Never raises: what cannot be read is its `problem`."""
    body = webhook.body.encode("latin-1", "replace")
    secret = None
    if application is not None and webhook.signature is not None:
        secret = application.find_secret(body, webhook.signature)
    id_, event, uuid, problem = _read_body(body)
    return Receipt(
        at=webhook.at,
        application=webhook.application,
        url=webhook.url,
        connection=webhook.connection,
        answer=webhook.answer,
        http_status=read_http_status(webhook.answer),
        id=id_,
        event=event,
        uuid=uuid,
        problem=problem,
        secret=secret,
    )


def read_http_status(text: str) -> int | None:
    """Return the status code that an answer or the result of a try begins with, or None if there was no answer."""
    return int(text[:3]) if text[:3].isdigit() else None


def is_success(http_status: int | None) -> bool:
    return http_status is not None and 200 <= http_status < 300


def _read_body(body: bytes) -> tuple[str | None, str, str, str | None]:
    """Return id, event, uuid, and what is wrong with the body."""
    try:
        fields: Any = json.loads(body)
    except ValueError:
        return None, "", "", "is not JSON"
    data = fields.get("data") if isinstance(fields, dict) else None
    if not isinstance(data, dict):
        return None, "", "", "is not an object with an object `data`"
    id_, event, uuid = fields.get("id"), fields.get("event"), data.get("uuid")
    if not (isinstance(id_, str) and isinstance(event, str) and isinstance(uuid, str)):
        return None, "", "", "lacks id, event or data.uuid, or one of them is not text"
    problem = None
    if fields.keys() != {"id", "event", "data"} or data.keys() != {"uuid"}:
        problem = f"has other fields: {', '.join(sorted({*fields, *data} - {'id', 'event', 'data', 'uuid'}))}"
    elif event not in EVENTS:
        problem = f"has the event {event}"
    return id_, event, uuid, problem
