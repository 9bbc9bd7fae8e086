"""Validates a create request, and reports all that is wrong with it at once (§7).

InvalidRequestError becomes the 422 of `error_responses`.
"""

from typing import Any
from uuid import UUID

from marshmallow import ValidationError

from services.api.create_schema import CreateSchema
from shared.domain.intents.intent import NewIntent
from shared.platform.strict_json import InvalidJsonError, parse_json_object

_BODY = "body"
_MAX_NAME = 120
_SCHEMA = CreateSchema()


class InvalidRequestError(Exception):
    """The request fails validation; `errors` has a list of texts for each failing field, by dotted name."""

    def __init__(self, errors: dict[str, list[str]], valid: dict[str, Any] | None = None) -> None:
        self.errors = errors
        self.valid = valid or {}
        super().__init__(", ".join(errors))


def parse_new_intent(application_id: UUID, body: dict[str, Any], trace: str | None = None) -> NewIntent:
    """Return the intent that `body` describes; raises InvalidRequestError. `trace` is that of the call."""
    try:
        valid = _SCHEMA.load(body)
    except ValidationError as error:
        valid_part = error.valid_data if isinstance(error.valid_data, dict) else {}
        raise InvalidRequestError(flatten_errors(error.messages), valid_part) from None
    customer = valid.get("customer")
    return NewIntent(
        application_id=application_id,
        merchant_reference=valid["merchant_reference"],
        amount=valid["amount"],
        currency=valid["currency"],
        description=valid.get("description"),
        customer_external_id=customer.get("external_id") if customer else None,
        return_url=valid.get("return_url"),
        metadata=valid.get("metadata"),
        expires_at=valid.get("expires_at"),
        trace=trace,
    )


def parse_body(body: bytes) -> dict[str, Any]:
    """Return the JSON object of the body; raises InvalidRequestError."""
    try:
        return parse_json_object(body)
    except InvalidJsonError as error:
        raise InvalidRequestError({_BODY: [str(error)]}) from None


def flatten_errors(messages: Any, path: str = "") -> dict[str, list[str]]:
    """Flatten marshmallow's nested messages to what §7 wants: dotted field name to list of strings."""
    if isinstance(messages, list):
        return {path: [str(message) for message in messages]}
    found: dict[str, list[str]] = {}
    for name, inner in messages.items():
        found |= flatten_errors(inner, f"{path}.{_short_name(str(name))}" if path else _short_name(str(name)))
    return found


def _short_name(name: str) -> str:
    """Return a caller's own key as it may be repeated: shortened, and valid text."""
    short = name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}…"
    return short.encode("utf-8", "replace").decode("utf-8")
