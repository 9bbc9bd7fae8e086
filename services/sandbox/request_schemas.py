"""From a request's body to what it asks for, or to what is wrong with it. What was sent is never quoted."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate, validates_schema

from services.sandbox.scripted_outcomes import Card, ChargeStatus, Wallet
from shared.domain.payment_methods import PaymentMethod

_LONGEST_TEXT = 100
_LONGEST_URL = 2000


class InvalidRequestError(Exception):
    """The text names each wrong field."""


@dataclass(frozen=True, slots=True)
class ChargeRequest:
    attempt: UUID
    intent: UUID
    method: PaymentMethod
    amount: int
    """Minor units."""
    currency: str
    notify_url: str
    details: Card | Wallet


@dataclass(frozen=True, slots=True)
class CodeSubmission:
    number: int
    """Counts the codes given for this charge: a repeat of one number is the same request."""
    code: str = field(repr=False)


def parse_charge_request(body: bytes) -> ChargeRequest:
    valid = _load(_ChargeSchema(), body)
    return ChargeRequest(
        attempt=valid["attempt"],
        intent=valid["intent"],
        method=valid["method"],
        amount=valid["amount"],
        currency=valid["currency"],
        notify_url=valid["notify_url"],
        details=_details(valid),
    )


def parse_code_submission(body: bytes) -> CodeSubmission:
    return CodeSubmission(**_load(_CodeSchema(), body))


def parse_settlement_outcome(body: bytes) -> ChargeStatus:
    return ChargeStatus(_load(_OutcomeSchema(), body)["outcome"])


def _details(valid: Mapping[str, Any]) -> Card | Wallet:
    if valid["method"] is PaymentMethod.CARD:
        card = valid["card"]
        return Card(card["number"], card["expiry_month"], card["expiry_year"])
    return Wallet(**valid["wallet"])


def _is_plain(url: str) -> None:
    if not (url.isascii() and url.isprintable()):
        raise ValidationError("Not a valid URL.")


def _text() -> fields.String:
    return fields.String(required=True, validate=validate.Length(1, _LONGEST_TEXT))


def _integer(least: int, most: int) -> fields.Integer:
    return fields.Integer(required=True, strict=True, validate=validate.Range(least, most))


class _Shape(Schema):
    class Meta:
        unknown = EXCLUDE


class _CardSchema(_Shape):
    number = _text()
    expiry_month = _integer(1, 12)
    expiry_year = _integer(1000, 9999)
    security_code = _text()


class _WalletSchema(_Shape):
    phone = _text()
    birth_year = fields.Integer(strict=True, allow_none=True, load_default=None)


class _ChargeSchema(_Shape):
    attempt = fields.UUID(required=True)
    intent = fields.UUID(required=True)
    method = fields.Enum(PaymentMethod, by_value=True, required=True)
    amount = _integer(1, 10**12)
    currency = fields.String(required=True, validate=validate.OneOf(["LYD"], error="Must be LYD."))
    notify_url = fields.String(
        required=True,
        validate=[
            validate.Length(max=_LONGEST_URL),
            validate.URL(schemes={"http", "https"}, require_tld=False),
            _is_plain,
        ],
    )
    card = fields.Nested(_CardSchema)
    wallet = fields.Nested(_WalletSchema)

    @validates_schema
    def has_details(self, valid: Mapping[str, Any], **_: Any) -> None:
        needed = "card" if valid["method"] is PaymentMethod.CARD else "wallet"
        if needed not in valid:
            raise ValidationError("Missing data for required field.", needed)


class _CodeSchema(_Shape):
    number = _integer(0, 10**9)
    code = _text()


class _OutcomeSchema(_Shape):
    outcome = fields.String(
        required=True, validate=validate.OneOf([ChargeStatus.PAID, ChargeStatus.DECLINED])
    )


def _load(schema: Schema, body: bytes) -> dict[str, Any]:
    try:
        valid = schema.load(_object_in(body))
    except ValidationError as error:
        raise InvalidRequestError(" ".join(_problems(error.messages))) from None
    assert isinstance(valid, dict)
    return valid


def _object_in(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidRequestError("The body must be a JSON object.")
    return value


def _problems(messages: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """marshmallow nests its messages as the fields are nested."""
    if isinstance(messages, Mapping):
        for name, inner in messages.items():
            yield from _problems(inner, path if name == "_schema" else (*path, name))
    else:
        yield f"{'.'.join(path)}: {' '.join(messages)}"
