"""What a create may carry (§4.1, §8): the schema that validates it is also what the reference is made from."""

from typing import Any
from uuid import UUID

from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate

from services.api.fields import Metadata, MinorUnits, Moment, ReturnUrl, Text
from shared.intents.store import NewIntent

BODY = "body"
_MAX_NAME = 120


class InvalidRequestError(Exception):
    """The request fails validation; `errors` has a list of texts for each failing field, by dotted name."""

    def __init__(self, errors: dict[str, list[str]], valid: dict[str, Any] | None = None) -> None:
        self.errors = errors
        self.valid = valid or {}
        super().__init__(", ".join(errors))


class CustomerSchema(Schema):
    class Meta:
        unknown = EXCLUDE

    error_messages = {"type": "Must be an object."}  # noqa: RUF012  marshmallow's way

    external_id = Text(
        allow_none=True,
        metadata={"description": "Your own id of the customer, echoed back.", "examples": ["customer-7"]},
    )


class CreateSchema(Schema):
    class Meta:
        unknown = EXCLUDE

    merchant_reference = Text(
        required=True,
        at_least=1,
        at_most=255,
        metadata={
            "description": "Your own reference of the order. Unique per application: it is the idempotency key.",
            "examples": ["order-1042"],
        },
    )
    amount = MinorUnits(
        required=True,
        at_least=1_000,
        at_most=1_000_000_000,
        metadata={
            "description": "In the minor unit of the currency. LYD has 3 decimal places: 1000 is one dinar.",
            "examples": [25_500],
        },
    )
    currency = Text(
        required=True,
        validate=validate.OneOf(["LYD"], error="Must be LYD."),
        metadata={"description": "ISO 4217 code. Currently `LYD` only.", "examples": ["LYD"]},
    )
    customer = fields.Nested(
        CustomerSchema, allow_none=True, metadata={"description": "Who pays, in your own terms."}
    )
    description = Text(
        allow_none=True,
        metadata={
            "description": "What the customer is paying for; shown on the hosted checkout.",
            "examples": ["Two bags of coffee"],
        },
    )
    return_url = ReturnUrl(
        allow_none=True,
        metadata={
            "description": "Where the checkout sends the customer afterwards; an expired checkout offers it as a "
            "link. Nothing is appended, so put your own order identifier in it.",
            "examples": ["https://shop.example/orders/1042"],
        },
    )
    metadata = Metadata(
        max_keys=20,
        key_at_most=40,
        value_at_most=255,
        allow_none=True,
        metadata={
            "description": "Your own key-value pairs, returned unchanged.",
            "examples": [{"branch": "tripoli"}],
        },
    )
    expires_at = Moment(
        allow_none=True,
        metadata={
            "description": "When the checkout stops taking payments, with Z or an offset. More than 5 minutes and "
            "less than 31 days ahead, which is checked only on creation. Default: 24 hours after creation.",
            "examples": ["2030-01-31T15:00:00Z"],
        },
    )


_SCHEMA = CreateSchema()


def new_intent(application_id: UUID, body: dict[str, Any]) -> NewIntent:
    """The intent that `body` asks for."""
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
    )


def flat(messages: Any, path: str = "") -> dict[str, list[str]]:
    """marshmallow nests its messages as the fields are nested; §7 wants field name to list of strings."""
    if isinstance(messages, list):
        return {path: [str(message) for message in messages]}
    found: dict[str, list[str]] = {}
    for name, inner in messages.items():
        if name == "_schema":
            found |= flat(inner, path or BODY)
        else:
            found |= flat(inner, f"{path}.{_shown(str(name))}" if path else _shown(str(name)))
    return found


def _shown(name: str) -> str:
    """A caller's own key is told back, but no megabytes of it and nothing that is no text."""
    short = name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}…"
    return short.encode("utf-8", "replace").decode("utf-8")
