"""Removes secrets, card numbers, one-time codes and phone numbers from what is about to be logged.

A value with a sensitive name is always replaced; everything else is searched as text.
"""

from collections.abc import Mapping

from shared.platform.redaction.text import REDACTED, is_sensitive_name, redact_text

__all__ = ["REDACTED", "TOO_DEEP", "UNREADABLE", "is_sensitive_name", "redact", "redact_text"]

UNREADABLE = "[unreadable]"
TOO_DEEP = "[too deep]"


def redact(value: object) -> object:
    """Return a copy of `value`, made of plain values and text, that may be logged. Never raises."""
    return _redact(value, inside="", depth=0)


def _redact(value: object, inside: str, depth: int) -> object:
    if value is None or isinstance(value, bool | float):
        return value
    try:
        if isinstance(value, int):
            return _redact_int(value)
        if isinstance(value, Mapping | list | tuple | set | frozenset):
            return _redact_items(value, inside, depth + 1) if depth < 8 else TOO_DEEP
        return redact_text(_text_of(value))
    except Exception:  # noqa: BLE001  a foreign __str__ may raise anything, and no log line may fail for it
        return UNREADABLE


def _redact_items(
    values: Mapping[object, object] | list[object] | tuple[object, ...] | set[object] | frozenset[object],
    inside: str,
    depth: int,
) -> object:
    if isinstance(values, Mapping):
        return {
            redact_text(str(name)): _redact_named(str(name), v, inside, depth) for name, v in values.items()
        }
    match values:
        case (str() as name, item) if isinstance(values, tuple):  # a header
            return redact_text(name), _redact_named(name, item, inside, depth)
    return [_redact(item, inside, depth) for item in values]


def _redact_named(name: str, value: object, inside: str, depth: int) -> object:
    is_empty = value is None or isinstance(value, bool) or value == ""
    if not is_empty and is_sensitive_name(f"{inside}.{name}"[-80:]):
        return REDACTED
    return _redact(value, inside=name, depth=depth)


def _redact_int(value: int) -> object:
    is_hidden = 10**11 <= value < 10**19 and redact_text(str(value)) == REDACTED
    return REDACTED if is_hidden else value


def _text_of(value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    return str(value)
