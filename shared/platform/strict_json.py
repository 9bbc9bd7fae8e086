"""Parses JSON from outside: request bodies, provider responses and notifications, files, records. Pure.

The size, the nesting and the length of numbers are bounded, so that nothing a stranger sends can exhaust the stack or
the memory. A repeated key is refused, because two readers of such an object can see two different values.
"""

import json
import re
from typing import Any, NoReturn

MAX_BYTES = 64 * 1024
MAX_DEPTH = 100
_BRACKET_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


class InvalidJsonError(ValueError):
    """The body is not JSON that we accept. The text tells a developer why, and may quote a key of the body."""


def parse_json_object(body: bytes, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Return the JSON object of the body. Raises InvalidJsonError."""
    if not body:
        raise InvalidJsonError("The body is empty; send a JSON object.")
    value = parse_json(body, max_bytes)
    if type(value) is not dict:
        raise InvalidJsonError("The body must be a JSON object.")
    return value


def parse_json(body: bytes, max_bytes: int = MAX_BYTES) -> Any:
    """Return the value: UTF-8, no repeated keys, no NaN, limited size and depth. Raises InvalidJsonError."""
    if len(body) > max_bytes:
        raise InvalidJsonError(f"The body is longer than {max_bytes} bytes.")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidJsonError(f"The body is not UTF-8 (byte {error.start}).") from None
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise InvalidJsonError(f"The body is nested more than {MAX_DEPTH} levels deep.")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidJsonError(f"The body is not valid JSON: {error.msg} ({where}).") from None
    except InvalidJsonError:
        raise
    except ValueError:  # the only other case: Python refuses integers of thousands of digits
        raise InvalidJsonError("The body has a number with too many digits.") from None


def _object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parsed = dict(pairs)
    if len(parsed) < len(pairs):
        last_index = {name: index for index, (name, _) in enumerate(pairs)}
        repeated = next(name for index, (name, _) in enumerate(pairs) if index != last_index[name])
        raise InvalidJsonError(f"The key {json.dumps(repeated)[:100]} appears more than once in one object.")
    return parsed


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJsonError(f"The body is not valid JSON: {name} is not a JSON number.")


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
