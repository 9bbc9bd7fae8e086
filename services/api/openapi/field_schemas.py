"""Says in JSON Schema what our marshmallow fields accept; apispec knows only marshmallow's own."""

from functools import singledispatch
from typing import Any

from marshmallow import fields, validate

from services.api.fields import Metadata, MinorUnits, Moment, ReturnUrl, Text

JsonSchema = dict[str, Any]

# Unpaired surrogates are refused too, but the engines that read patterns do not agree on how to say so.
_NO_NUL = r"^[^\x00]*$"


def describe_field(_converter: object, field: fields.Field[Any], **_: Any) -> JsonSchema:
    """An attribute function of apispec: what to add to the description of `field`."""
    described = _accepted_by(field)
    if field.allow_none and "type" in described:
        described["type"] = [described["type"], "null"]
    return described


@singledispatch
def _accepted_by(_field: fields.Field[Any]) -> JsonSchema:
    return {}


@_accepted_by.register
def _(field: Text) -> JsonSchema:
    if any(isinstance(validator, validate.OneOf) for validator in field.validators):
        return {"type": "string"}
    return _text(field.at_least, field.at_most)


@_accepted_by.register
def _(field: ReturnUrl) -> JsonSchema:
    return {"type": "string", "format": "uri", "pattern": field.pattern}


@_accepted_by.register
def _(field: MinorUnits) -> JsonSchema:
    return {"type": "integer", "minimum": field.at_least, "maximum": field.at_most}


@_accepted_by.register
def _(_field: Moment) -> JsonSchema:
    return {"type": "string", "format": "date-time"}


@_accepted_by.register
def _(field: Metadata) -> JsonSchema:
    return {
        "type": "object",
        "maxProperties": field.max_keys,
        "propertyNames": _text(0, field.key_at_most),
        "additionalProperties": _text(0, field.value_at_most),
    }


def _text(at_least: int, at_most: int | None) -> JsonSchema:
    limits = {"minLength": at_least or None, "maxLength": at_most}
    return {"type": "string", **{name: limit for name, limit in limits.items() if limit}, "pattern": _NO_NUL}
