"""marshmallow fields and schemas for requests, strict about what a payment may carry."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from marshmallow import EXCLUDE, Schema, ValidationError, fields
from marshmallow.exceptions import SCHEMA

_NOT_TEXT = "Must be a string."
_NUL = "Must not contain the character U+0000."
_SURROGATE = "Must not contain unpaired surrogates (U+D800 to U+DFFF)."


class RequestField(fields.Field[Any]):
    default_error_messages = {"required": "Is required.", "null": "Must not be null."}  # noqa: RUF012  marshmallow's way


class RequestSchema(Schema):
    class Meta:
        unknown = EXCLUDE

    error_messages = {"type": "Must be an object."}  # noqa: RUF012  marshmallow's way

    def handle_error(self, error: ValidationError, data: Any, **_: Any) -> None:
        """Report a value that is no object like any other wrong value, without the key that marshmallow adds."""
        if not isinstance(data, dict):
            error.messages = error.messages_dict[SCHEMA]


def text_problem(value: object, at_most: int | None = None) -> str | None:
    """Return why `value` cannot be stored as text, or None. Lengths are counted in characters."""
    if type(value) is not str:
        return _NOT_TEXT
    if at_most is not None and len(value) > at_most:
        return f"Must have at most {at_most} characters; it has {len(value)}."
    if not value.isprintable():  # rare, and quick to rule out
        if "\0" in value:
            return _NUL
        if not value.isascii() and not _is_encodable(value):
            return _SURROGATE
    return None


class Text(RequestField):
    def __init__(self, *, at_least: int = 0, at_most: int | None = None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.at_least = at_least
        self.at_most = at_most

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        problem = text_problem(value, self.at_most)
        if problem is None and len(value) < self.at_least:
            problem = "Must not be empty."
        if problem is not None:
            raise ValidationError(problem)
        return str(value)


class ReturnUrl(Text):
    """An absolute http or https URL. The customer's browser is sent there unchanged."""

    # Nothing that browsers interpret differently: no spaces, control characters or backslashes. The reference has this
    # pattern too, so it must also be valid for JavaScript's "u" flag, which allows no needless escapes.
    pattern = (
        r"^[hH][tT][tT][pP][sS]?://"
        r"([^\s\x00-\x1f\x7f\\/?#@]*@)?"
        r'([^\s\x00-\x1f\x7f\\/?#@:\[\]<>"{}|^`%]+|\[[0-9A-Fa-f:.]+\])'
        r"(:[0-9]{1,5})?"
        r"([/?#][^\s\x00-\x1f\x7f\\]*)?$"
    )
    _shape = re.compile(pattern)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        url = super()._deserialize(value, attr, data, **kwargs)
        if not self._shape.fullmatch(url) or not _has_host(url):
            raise ValidationError(
                "Must be an absolute http or https URL, such as https://shop.example/orders/1."
            )
        return url


class MinorUnits(RequestField):
    """An amount: a JSON integer, and nothing that only looks like one."""

    def __init__(self, *, at_least: int, at_most: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.at_least = at_least
        self.at_most = at_most

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if type(value) is not int:
            raise ValidationError("Must be an integer in minor units, without quotes, fraction or exponent.")
        if not self.at_least <= value <= self.at_most:
            raise ValidationError(f"Must be between {self.at_least} and {self.at_most} minor units.")
        return value


class Moment(RequestField):
    """A date and time with its offset from UTC, in the extended form of ISO 8601, which includes RFC 3339."""

    pattern = r"^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?([Zz]|[+-]\d{2}(:?[0-5]\d)?)$"
    _shape = re.compile(pattern, re.ASCII)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> datetime:
        if type(value) is not str:
            raise ValidationError(_NOT_TEXT)
        if not self._shape.fullmatch(value):
            raise ValidationError(
                "Must be an ISO 8601 date-time with Z or an offset, such as 2030-01-31T15:00:00Z."
            )
        try:
            # In UTC, because PostgreSQL does not accept all offsets that Python does.
            return datetime.fromisoformat(value.upper().replace(",", ".")).astimezone(UTC)
        except (ValueError, OverflowError):
            raise ValidationError("Is not a date and time that exists.") from None


class Metadata(RequestField):
    """An object of strings, returned as sent and in the same order."""

    def __init__(self, *, max_keys: int, key_at_most: int, value_at_most: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.max_keys = max_keys
        self.key_at_most = key_at_most
        self.value_at_most = value_at_most

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, str]:
        if type(value) is not dict:
            raise ValidationError("Must be an object of strings.")
        if len(value) > self.max_keys:
            raise ValidationError(f"Must have at most {self.max_keys} keys; it has {len(value)}.")
        if problems := self._problems(value):
            raise ValidationError(problems)
        return value

    def _problems(self, value: Mapping[str, object]) -> dict[str, list[str]]:
        problems: dict[str, list[str]] = {}
        for key, text in value.items():
            key_problem, value_problem = (
                text_problem(key, self.key_at_most),
                text_problem(text, self.value_at_most),
            )
            if key_problem or value_problem:
                both = [f"Key: {key_problem}" if key_problem else None, value_problem]
                problems[key] = [problem for problem in both if problem]
        return problems


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _is_encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
