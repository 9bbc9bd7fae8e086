"""From a request body to a new intent, or to all that is wrong with it at once, under flat names (§7)."""

from typing import Any
from uuid import UUID

from marshmallow import ValidationError

from services.api.create_schema import CreateSchema
from shared.domain.intents.intent import NewIntent

BODY = "body"
_MAX_NAME = 120


class InvalidRequestError(Exception):
    """The request fails validation; `errors` has a list of texts for each failing field, by dotted name."""

    def __init__(self, errors: dict[str, list[str]], valid: dict[str, Any] | None = None) -> None:
        self.errors = errors
        self.valid = valid or {}
        super().__init__(", ".join(errors))


_SCHEMA = CreateSchema()


def new_intent(application_id: UUID, body: dict[str, Any], trace: str | None = None) -> NewIntent:
    """The intent that `body` asks for, in a call of this trace."""
    try:
        valid = _SCHEMA.load(body)
    except ValidationError as error:
        valid_part = error.valid_data if isinstance(error.valid_data, dict) else {}
        raise InvalidRequestError(flat(error.messages), valid_part) from None
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


def flat(messages: Any, path: str = "") -> dict[str, list[str]]:
    """marshmallow nests its messages as the fields are nested; §7 wants field name to list of strings."""
    if isinstance(messages, list):
        return {path: [str(message) for message in messages]}
    found: dict[str, list[str]] = {}
    for name, inner in messages.items():
        found |= flat(inner, f"{path}.{_shown(str(name))}" if path else _shown(str(name)))
    return found


def _shown(name: str) -> str:
    """A caller's own key is told back, but no megabytes of it and nothing that is no text."""
    short = name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}…"
    return short.encode("utf-8", "replace").decode("utf-8")
