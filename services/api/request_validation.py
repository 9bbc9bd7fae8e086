"""Validates a create request: parses the JSON body, and reports all that is wrong with it at once (§7).

InvalidRequestError becomes the 422 of `error_responses`.
"""

import json
import re
from typing import Any, NoReturn
from uuid import UUID

from marshmallow import ValidationError

from services.api.create_schema import CreateSchema
from shared.domain.intents.intent import NewIntent

BODY = "body"
_MAX_NAME = 120
MAX_DEPTH = 100
_BRACKET_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_SCHEMA = CreateSchema()


class InvalidBodyError(Exception):
    """The body is not a JSON object that can be validated field by field; the text tells a developer why."""


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


def parse_json_object(body: bytes) -> dict[str, Any]:
    """Parse the body strictly: UTF-8, no repeated keys, no NaN, limited depth. Raises InvalidBodyError."""
    if not body:
        raise InvalidBodyError("The body is empty; send a JSON object.")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidBodyError(f"The body is not UTF-8 (byte {error.start}).") from None
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise InvalidBodyError(f"The body is nested more than {MAX_DEPTH} levels deep.")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidBodyError(f"The body is not valid JSON: {error.msg} ({where}).") from None
    except ValueError:  # the only other case: Python refuses integers of thousands of digits
        raise InvalidBodyError("The body has a number with too many digits.") from None
    if type(value) is not dict:
        raise InvalidBodyError("The body must be a JSON object.")
    return value


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


def _object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parsed = dict(pairs)
    if len(parsed) < len(pairs):
        last_index = {name: index for index, (name, _) in enumerate(pairs)}
        repeated = next(name for index, (name, _) in enumerate(pairs) if index != last_index[name])
        raise InvalidBodyError(f"The key {json.dumps(repeated)[:100]} appears more than once in one object.")
    return parsed


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidBodyError(f"The body is not valid JSON: {name} is not a JSON number.")


def _depth(text: str) -> int:
    """Return how deep brackets are nested. The parser itself would run out of stack on thousands."""
    deepest = depth = 0
    for match in _BRACKET_OR_STRING.finditer(text):
        sign = match[0]
        if sign in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in "]}":
            depth -= 1
    return deepest


_DECODER = json.JSONDecoder(object_pairs_hook=_object_without_repeats, parse_constant=_refuse_constant)
