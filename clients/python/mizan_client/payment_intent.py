"""A payment intent, as the API returns it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Customer:
    external_id: str | None


@dataclass(frozen=True, slots=True)
class PaymentIntent:
    uuid: str
    reference: str | None
    merchant_reference: str | None
    amount: int
    """Minor units: 1000 is one dinar."""
    currency: str
    status: str
    """`requires_payment_method`, `processing`, `succeeded` or `canceled`. Fulfil the order only if `succeeded`."""
    description: str | None
    customer: Customer
    return_url: str | None
    metadata: Mapping[str, str] | None
    expires_at: datetime | None
    checkout_url: str
    created_at: datetime | None
    updated_at: datetime | None


def parse_payment_intent(body: Any) -> PaymentIntent:
    """Return the intent in a response body. Unknown fields are ignored. Raises ValueError if it is not an intent."""
    try:
        data = body["data"]
        return PaymentIntent(
            uuid=_text(data["uuid"]),
            reference=_optional_text(data.get("reference")),
            merchant_reference=_optional_text(data.get("merchant_reference")),
            amount=_integer(data["amount"]),
            currency=_text(data["currency"]),
            status=_text(data["status"]),
            description=_optional_text(data.get("description")),
            customer=Customer(_optional_text((data.get("customer") or {}).get("external_id"))),
            return_url=_optional_text(data.get("return_url")),
            metadata=_metadata(data.get("metadata")),
            expires_at=_moment(data.get("expires_at")),
            checkout_url=_text(data["checkout_url"]),
            created_at=_moment(data.get("created_at")),
            updated_at=_moment(data.get("updated_at")),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("not a payment intent") from error


def is_uuid(value: Any) -> bool:
    """Return whether this is a uuid with hyphens. Nothing else may become part of a URL."""
    pattern = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("not an integer")
    return value


def _metadata(value: Any) -> Mapping[str, str] | None:
    return None if value is None else {key: _text(item) for key, item in value.items()}


def _moment(value: Any) -> datetime | None:
    if value is None:
        return None
    moment = datetime.fromisoformat(_text(value))
    if moment.tzinfo is None:
        raise ValueError("a time without a time zone")
    return moment
