"""Reads a request body as one JSON object, or says what is wrong with it."""

import json
import re
from typing import Any, NoReturn

MAX_DEPTH = 100
_BRACKET_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


class BodyNotUsableError(Exception):
    """The body is not what can be validated field by field; the text tells a developer why."""


def read_object(body: bytes) -> dict[str, Any]:
    if not body:
        raise BodyNotUsableError("The body is empty; send a JSON object.")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BodyNotUsableError(f"The body is not UTF-8 (byte {error.start}).") from None
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise BodyNotUsableError(f"The body is nested more than {MAX_DEPTH} levels deep.")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BodyNotUsableError(f"The body is not valid JSON: {error.msg} ({where}).") from None
    except ValueError:  # the only other one: Python refuses to read integers of thousands of digits
        raise BodyNotUsableError("The body has a number with too many digits.") from None
    if type(value) is not dict:
        raise BodyNotUsableError("The body must be a JSON object.")
    return value


def _object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        last_place = {name: place for place, (name, _) in enumerate(pairs)}
        repeated = next(name for place, (name, _) in enumerate(pairs) if place != last_place[name])
        raise BodyNotUsableError(
            f"The key {json.dumps(repeated)[:100]} appears more than once in one object."
        )
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise BodyNotUsableError(f"The body is not valid JSON: {name} is no JSON number.")


def _depth(text: str) -> int:
    """How deep brackets are nested; the parser itself would run out of stack on thousands."""
    deepest = depth = 0
    for found in _BRACKET_OR_STRING.finditer(text):
        sign = found[0]
        if sign in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in "]}":
            depth -= 1
    return deepest


_DECODER = json.JSONDecoder(object_pairs_hook=_object_without_repeats, parse_constant=_refuse_constant)
