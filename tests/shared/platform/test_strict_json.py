"""JSON from outside is parsed with bounds, and everywhere by the same parser."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.platform.strict_json import MAX_BYTES, MAX_DEPTH, InvalidJsonError, parse_json, parse_json_object

PROJECT = Path(__file__).parents[3]
READS_ITS_OWN_JSON = {
    "mizan/intent.py": "metadata in the database, checked when it was created",
    "mizan/roles.py": "the passwords that an administrator gives",
    "services/api/openapi/examples.py": "a representation that it has just made",
    "services/checkout/payments/one_time_codes.py": "what we have encrypted",
    "services/dashboard/payments/queries.py": "metadata that the API has validated",
    "shared/domain/applications/provider_accounts.py": "what we have encrypted",
    "shared/domain/intents/intent.py": "metadata that the API has validated",
    "shared/domain/messages.py": "typed, and catches RecursionError",
    "shared/platform/encryption.py": "what we have encrypted",
    "shared/platform/kafka/stall_recovery.py": "the statistics that librdkafka writes in this process",
    "shared/platform/settings/environment.py": "the stack file, which the launcher writes",
}
"""Modules that parse JSON in another way, and what makes that safe."""


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"[" * 16_000, "nested more than 100 levels deep"),
        (b'{"a":' * 8_000, "nested more than 100 levels deep"),
        (b'{"a": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}", "nested more than 100 levels deep"),
        (b'{"a": "' + b"x" * MAX_BYTES + b'"}', f"longer than {MAX_BYTES} bytes"),
        (b'{"a": 1, "b": 2, "a": 3}', 'The key "a" appears more than once'),
        (b'{"a": {"b": 2, "b": 3}}', 'The key "b" appears more than once'),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "too many digits"),
        (b'{"a": "\xff"}', r"not UTF-8 \(byte 7\)"),
        (b'{"a": 1', r"not valid JSON: .* \(line 1, column 8\)"),
        (b"", "empty"),
        (b"[]", "must be a JSON object"),
    ],
    ids=lambda value: value[:20].decode("latin-1") if isinstance(value, bytes) else "",
)
def test_invalid_body_is_refused_with_the_reason(body: bytes, why: str) -> None:
    with pytest.raises(InvalidJsonError, match=why):
        parse_json_object(body)


def test_body_at_the_limits_is_accepted() -> None:
    deep = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert str(parse_json(deep)).count("[") == MAX_DEPTH
    brackets = "[" * 1_000
    assert parse_json_object(b'{"a": "%s"}' % brackets.encode()) == {"a": brackets}
    long = b'"' + b"x" * (MAX_BYTES - 2) + b'"'
    assert len(parse_json(long)) == MAX_BYTES - 2
    assert parse_json_object(b'{"a": {"x": 1}, "b": {"x": 1}}', max_bytes=30) == {
        "a": {"x": 1},
        "b": {"x": 1},
    }
    with pytest.raises(InvalidJsonError, match="longer than 29 bytes"):
        parse_json_object(b'{"a": {"x": 1}, "b": {"x": 1}}', max_bytes=29)


def modules_that_parse_json(package: str) -> Iterator[str]:
    """Yield the modules that call json.load(s), a decoder of msgspec, or Flask's or requests' own parser."""
    for path in (PROJECT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(ast.Name("json"), "load" | "loads")):
                    yield str(path.relative_to(PROJECT))
                case ast.Call(func=ast.Attribute(_, "get_json" | "Decoder" | "JSONDecoder")):
                    yield str(path.relative_to(PROJECT))
                case ast.Call(func=ast.Attribute(ast.Attribute(ast.Name("msgspec"), "json"), "decode")):
                    yield str(path.relative_to(PROJECT))
                case ast.Call(func=ast.Attribute(_, "json"), args=[], keywords=[]):
                    yield str(path.relative_to(PROJECT))


def test_only_modules_that_read_their_own_json_use_another_parser() -> None:
    """A body of a stranger in another parser has once been a 500: a RecursionError is no ValueError."""
    found = {
        module for package in ("mizan", "services", "shared") for module in modules_that_parse_json(package)
    }
    assert found - {"shared/platform/strict_json.py"} == READS_ITS_OWN_JSON.keys()
