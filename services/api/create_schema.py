"""The schema of a create request (§4.1, §8). It validates requests, and the reference is generated from it."""

from marshmallow import fields, validate

from services.api.fields import Metadata, MinorUnits, Moment, RequestSchema, ReturnUrl, Text


class CustomerSchema(RequestSchema):
    external_id = Text(
        allow_none=True,
        metadata={"description": "Your own id of the customer, echoed back.", "examples": ["customer-7"]},
    )


class CreateSchema(RequestSchema):
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
        metadata={"description": "ISO 4217 code of the currency.", "examples": ["LYD"]},
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
            "description": "Absolute http or https URL. The checkout sends the customer there after paying; an "
            "expired checkout links to it. Nothing is appended, so put your own order identifier in it.",
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
