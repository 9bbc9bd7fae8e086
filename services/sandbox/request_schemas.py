"""Schemas that parse and validate request bodies. Error texts never quote what was sent."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate, validates_schema

from services.sandbox.checkout_client import Payment
from services.sandbox.scripted_outcomes import Card, ChargeStatus, Wallet
from shared.domain.payment_methods import PaymentMethod
from shared.platform.strict_json import InvalidJsonError, parse_json_object

_MAX_TEXT_LENGTH = 100
_MAX_URL_LENGTH = 2000


class InvalidRequestError(Exception):
    """The body is not valid. The text names each invalid field."""


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
    """Number of the code for this charge. A repeated number is the same request."""
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


def parse_payment_request(body: bytes) -> tuple[UUID, Payment]:
    """Return the intent, and what its customer enters."""
    valid = _load(_PaymentSchema(), body)
    intent: UUID = valid.pop("intent")
    card, method = valid.pop("card", None), valid.pop("wallet", None)
    if card is not None:
        return intent, Payment.by_card(card, **valid)
    return intent, Payment.by_wallet(method, **valid)


def parse_settlement_outcome(body: bytes) -> ChargeStatus:
    return ChargeStatus(_load(_OutcomeSchema(), body)["outcome"])


def _details(valid: Mapping[str, Any]) -> Card | Wallet:
    if valid["method"] is PaymentMethod.CARD:
        card = valid["card"]
        return Card(card["number"], card["expiry_month"], card["expiry_year"])
    return Wallet(**valid["wallet"])


def _require_plain_ascii(url: str) -> None:
    if not (url.isascii() and url.isprintable()):
        raise ValidationError("Not a valid URL.")


def _text() -> fields.String:
    return fields.String(required=True, validate=validate.Length(1, _MAX_TEXT_LENGTH))


def _optional_text() -> fields.String:
    return fields.String(validate=validate.Length(1, _MAX_TEXT_LENGTH))


def _integer(minimum: int, maximum: int) -> fields.Integer:
    return fields.Integer(required=True, strict=True, validate=validate.Range(minimum, maximum))


class _RequestSchema(Schema):
    class Meta:
        unknown = EXCLUDE


class _CardSchema(_RequestSchema):
    number = _text()
    expiry_month = _integer(1, 12)
    expiry_year = _integer(1000, 9999)
    security_code = _text()


class _WalletSchema(_RequestSchema):
    phone = _text()
    birth_year = fields.Integer(strict=True, allow_none=True, load_default=None)


class _ChargeSchema(_RequestSchema):
    attempt = fields.UUID(required=True)
    intent = fields.UUID(required=True)
    method = fields.Enum(PaymentMethod, by_value=True, required=True)
    amount = _integer(1, 10**12)
    currency = fields.String(required=True, validate=validate.OneOf(["LYD"], error="Must be LYD."))
    notify_url = fields.String(
        required=True,
        validate=[
            validate.Length(max=_MAX_URL_LENGTH),
            validate.URL(schemes={"http", "https"}, require_tld=False),
            _require_plain_ascii,
        ],
    )
    card = fields.Nested(_CardSchema)
    wallet = fields.Nested(_WalletSchema)

    @validates_schema
    def has_details(self, valid: Mapping[str, Any], **_: Any) -> None:
        needed = "card" if valid["method"] is PaymentMethod.CARD else "wallet"
        if needed not in valid:
            raise ValidationError("Missing data for required field.", needed)


class _CodeSchema(_RequestSchema):
    number = _integer(0, 10**9)
    code = _text()


class _PaymentSchema(Schema):
    """Either a card or a wallet. Unlike elsewhere, an unknown field is an error: a test that misspells it fails."""

    intent = fields.UUID(required=True)
    card = _optional_text()
    expiry = _optional_text()
    security_code = _optional_text()
    wallet = fields.Enum(PaymentMethod, by_value=True, validate=validate.NoneOf([PaymentMethod.CARD]))
    phone = _optional_text()
    birth_year = _optional_text()
    code = _optional_text()

    @validates_schema
    def has_one_method(self, valid: Mapping[str, Any], **_: Any) -> None:
        if ("card" in valid) == ("wallet" in valid):
            raise ValidationError("Give either card or wallet.")
        if "wallet" in valid and "phone" not in valid:
            raise ValidationError("A wallet needs it.", "phone")
        of_the_other = ("phone", "birth_year") if "card" in valid else ("expiry", "security_code")
        for name in of_the_other:
            if name in valid:
                raise ValidationError("Not a field of this method.", name)


class _OutcomeSchema(_RequestSchema):
    outcome = fields.String(
        required=True, validate=validate.OneOf([ChargeStatus.PAID, ChargeStatus.DECLINED])
    )


def _load(schema: Schema, body: bytes) -> dict[str, Any]:
    try:
        valid = schema.load(_parse_object(body))
    except ValidationError as error:
        raise InvalidRequestError(" ".join(_problems(error.messages))) from None
    assert isinstance(valid, dict)
    return valid


def _parse_object(body: bytes) -> dict[str, Any]:
    try:
        return parse_json_object(body)
    except InvalidJsonError:
        raise InvalidRequestError("The body must be a JSON object, with each key once.") from None


def _problems(messages: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield one text per field. marshmallow nests messages like the fields."""
    if isinstance(messages, Mapping):
        for name, inner in messages.items():
            yield from _problems(inner, path if name == "_schema" else (*path, name))
    else:
        yield f"{'.'.join(path)}: {' '.join(messages)}"
