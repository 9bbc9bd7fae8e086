"""Card and phone numbers in text, in every script's digits and however they are spaced."""

import re
from collections.abc import Iterator
from itertools import accumulate
from urllib.parse import unquote

REDACTED = "[redacted]"

# Spaces, dashes, and the invisible marks that copying from Arabic text leaves behind.
SPACER = (
    r"[ \t\u00a0\u2000-\u200a\u202f\u3000+\-\u2010-\u2015\u2212"
    r"\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
_DIGITS_ANDSPACERS = re.compile(rf"(?:\d|{SPACER})+")
_UUID = r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9A-Za-z])"
_AFTER_ESCAPE = r"(?<=\\[nrt])|(?<=%[0-9a-fA-F]{2})|(?<=\\x[0-9a-fA-F]{2})|(?<=\\u[0-9a-fA-F]{4})"
_NUMBER = re.compile(
    rf"(?P<uuid>{_UUID})"
    rf"|(?:(?<![\dA-Za-z])|{_AFTER_ESCAPE})\d(?:{SPACER}{{0,4}}\d){{9,}}(?![\dA-Za-z])"
)
_ISO_DATES = re.compile(r"(?:20\d\d-[01]\d-[0-3]\d ?)+")
_PHONE = re.compile(r"(?:(?:00)?2180?|0)9\d{8}")
_ESCAPE = re.compile(r"(?:%[0-9a-fA-F]{2})+|(?:\\x[0-9a-fA-F]{2})+|\\u(?P<point>[0-9a-fA-F]{4})")

_TEN_DIGITS = re.compile(r"\d(?:\D{0,4}\d){9}")


def hide_numbers(text: str) -> str:
    return _NUMBER.sub(_hide_in_run, text) if _TEN_DIGITS.search(text) else text


def unescape_digits(text: str) -> str:
    """Digits, and what may stand between them, written as escapes; any other escape stays as it is."""
    return _ESCAPE.sub(_unescape, text) if "\\" in text or "%" in text else text


def _unescape(match: re.Match[str]) -> str:
    point = match["point"]
    plain = chr(int(point, 16)) if point else unquote(match[0].replace("\\x", "%"))
    return plain if _DIGITS_ANDSPACERS.fullmatch(plain) else match[0]


def _hide_in_run(match: re.Match[str]) -> str:
    text = match[0]
    if match["uuid"]:
        return text
    places = [place for place, character in enumerate(text) if character.isdecimal()]
    shown, position = [], 0
    for first, last in _numbers_to_hide(text, places, _is_fraction(match)):
        if places[first] >= position:
            shown += [text[position : places[first]], REDACTED]
        position = max(position, places[last] + 1)
    return "".join([*shown, text[position:]])


def _is_fraction(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - 2) : match.start()]
    return len(before) == 2 and before[0].isdecimal() and before[1] == "."


def _numbers_to_hide(text: str, places: list[int], fraction: bool) -> Iterator[tuple[int, int]]:
    """First and last digit of each card or phone number; it begins and ends where a group of digits does."""
    digits = [int(text[place]) for place in places]
    ends = [here + 1 != after for here, after in zip(places, [*places[1:], -1], strict=True)]
    luhn = _luhn_sums(digits)
    for first in range(len(digits)):
        if first and not ends[first - 1]:
            continue
        for last in range(first + 9, min(first + 19, len(digits))):
            if not ends[last]:
                continue
            written = text[places[first] : places[last] + 1]
            number = digits[first : last + 1]
            if fraction and first == 0 and len(written) == len(number):
                continue
            sums = luhn[last % 2]
            is_card = len(number) >= 13 and 2 <= number[0] <= 6 and (sums[last + 1] - sums[first]) % 10 == 0
            is_phone = number[0] in (0, 2) and _PHONE.fullmatch("".join(map(str, number)))
            if is_phone or (is_card and not _ISO_DATES.fullmatch(written)):
                yield first, last


def _luhn_sums(digits: list[int]) -> tuple[list[int], list[int]]:
    """Running Luhn sums for numbers that end at an even and at an odd place; a stretch is one subtraction."""
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits]
    even = [doubled[i] if i % 2 else digit for i, digit in enumerate(digits)]
    odd = [digit if i % 2 else doubled[i] for i, digit in enumerate(digits)]
    return list(accumulate(even, initial=0)), list(accumulate(odd, initial=0))
