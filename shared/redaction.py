"""Takes secrets, card numbers, one-time codes and phone numbers out of what is about to be logged.

What stands under a sensitive name goes unseen; everything else is searched as text.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import accumulate
from urllib.parse import unquote

REDACTED = "[redacted]"
UNREADABLE = "[unreadable]"
TOO_DEEP = "[too deep]"

# A name is sensitive when its last words are one of these: `new_password`, `X-API-Key`, `accessToken`.
_SENSITIVE_ENDING = re.compile(
    r"(?:password|passwordhash|passwd|pwd|passphrase|secret|token|authorization|cookie|credential|sessionid"
    r"|(?:api|access|secret|private|signing|signature|encryption|master)key|signature"
    r"|cardnumber|cardno|cardpan|cardexpiry|cardexpirydate|(?:expiry|exp)(?:month|year)"
    r"|cvc|cvv|csc|otp|(?:card|security|onetime|verification|confirmation|sms|pin|otp)code"
    r"|phone|mobile|(?:phone|mobile)(?:number|no)|msisdn|telephone"
    r"|birthyear|birthdate|birthday|dateofbirth|yearofbirth|dob)s?"
)
# Too common as an ending (`status_code`, `lifespan`): sensitive only when they are the whole name.
_SENSITIVE_WHOLE = re.compile(r"(?:code|pan|pin|tel|expiry|expirydate)s?")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# Spaces, dashes, and the invisible marks that copying from Arabic text leaves behind.
_SPACER = (
    r"[ \t\u00a0\u2000-\u200a\u202f\u3000+\-\u2010-\u2015\u2212"
    r"\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
_DIGITS_AND_SPACERS = re.compile(rf"(?:\d|{_SPACER})+")
_UUID = r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9A-Za-z])"
_AFTER_ESCAPE = r"(?<=\\[nrt])|(?<=%[0-9a-fA-F]{2})|(?<=\\x[0-9a-fA-F]{2})|(?<=\\u[0-9a-fA-F]{4})"
_NUMBER = re.compile(
    rf"(?P<uuid>{_UUID})"
    rf"|(?:(?<![\dA-Za-z])|{_AFTER_ESCAPE})\d(?:{_SPACER}{{0,4}}\d){{9,}}(?![\dA-Za-z])"
)
_ISO_DATES = re.compile(r"(?:20\d\d-[01]\d-[0-3]\d ?)+")
_PHONE = re.compile(r"(?:(?:00)?2180?|0)9\d{8}")
_ESCAPE = re.compile(r"(?:%[0-9a-fA-F]{2})+|(?:\\x[0-9a-fA-F]{2})+|\\u(?P<point>[0-9a-fA-F]{4})")

_TOKEN = re.compile(r"(?<![A-Za-z0-9_])(?P<kept>(?:pk|sk|at|whsec)_)(?P<rest>[A-Za-z0-9_+/=-]{6,})")
# Names such as `at_least_once` or the constraint `pk_payment_intents` are no keys.
_SNAKE_CASE = re.compile(r"[a-z]{1,15}(?:_(?:[a-z]{1,15}|\d{1,4}))*")
_BEARER = re.compile(
    r"(?P<kept>\bbearer\s+)(?!(?:tokens?|auth\w*|scheme|is|realm|required|missing|header)\b)[^\s\"',;]+",
    re.IGNORECASE,
)
_BASIC = re.compile(r"(?P<kept>\b[Bb]asic\s+)(?=[a-z]*[A-Z0-9+/=])[A-Za-z0-9+/=_-]{4,}")
# An unescaped slash makes the URL invalid, which is exactly when the driver prints it in an error.
_URL_PASSWORD = re.compile(
    r"(?P<kept>postgres[\w+]{0,20}://[^\s:/@]*:)\S+@|(?P<other>://[^\s:/?#@]*:)[^\s/]+@"
)
_HEADER_LINE = re.compile(
    r"(?P<kept>(?:authorization|cookie)\\*[\"']?\s{0,3}[=:]\s{0,3}\\*[\"']?)[^\r\n\"']+", re.IGNORECASE
)
_NAME = re.compile(
    r"(?<![A-Za-z0-9_.-])(?P<name>(?:[A-Za-z]{1,20} ){0,2}[A-Za-z][A-Za-z0-9_.-]{1,63})"
    r"\\*[\"']?\s{0,3}[=:]\s{0,3}(?:b(?=[\"']))?"
)
_VALUE = re.compile(
    r"\[redacted\]|(?P<quote>\\*[\"']).{0,1024}?(?<!\\)(?P=quote)|[\"']?[^\s\"'&]+?(?=[,;.)\]}>]*(?:[\s\"'&]|$))",
    re.DOTALL,
)
_CODE = re.compile(
    r"(?<![A-Za-z0-9])(?P<kept>(?:(?P<before>[A-Za-z]+)[ _-])?(?:code|otp|pin)"
    rf"\\*[\"']?\s{{0,3}}(?:[=:]|is\b)?\s{{0,3}}\\*[\"']?)(?<!\w)\d(?:{_SPACER}?\d){{3,7}}(?!\w)",
    re.IGNORECASE,
)
_HARMLESS_BEFORE_CODE = re.compile(
    r"status|error|exit|response|event|country|return|reason|http|sql|sqlstate|state|postal|zip|currency|area",
    re.IGNORECASE,
)

# Cheap looks that spare most texts the patterns above.
_QUIET = re.compile(r"[^\d=:_]*")
_TEN_DIGITS = re.compile(r"\d(?:\D{0,4}\d){9}")
_TOKEN_HINTS = ("pk_", "sk_", "at_", "whsec_", "://", "bearer", "basic")
_NAME_HINTS = (
    *("pass", "pwd", "secret", "token", "authoriz", "cookie", "credential", "session", "key", "signature"),
    *("card", "exp", "cvc", "cvv", "csc", "code", "otp", "pin", "pan"),
    *("phone", "mobile", "msisdn", "tel", "birth", "dob"),
)


def redact(value: object) -> object:
    """A copy of `value`, made of plain values and text, that may be logged. Never raises."""
    return _redact(value, inside="", depth=0)


def redact_text(text: str) -> str:
    """`text` with every secret, card number, code and phone number in it replaced."""
    lowered = text.lower()
    if _QUIET.fullmatch(text) and "bearer" not in lowered and "basic" not in lowered:
        return text
    if "\\" in text or "%" in text:
        text = _ESCAPE.sub(_unescape_digits, text)
    if any(hint in lowered for hint in _TOKEN_HINTS):
        text = _hide_tokens(text)
    if any(hint in lowered for hint in _NAME_HINTS):
        text = _HEADER_LINE.sub(_hide_rest, text)
        text = _hide_assigned(text)
        text = _CODE.sub(_hide_code, text)
    if _TEN_DIGITS.search(text):
        text = _NUMBER.sub(_hide_numbers, text)
    return text


@lru_cache(maxsize=2048)
def is_sensitive_name(name: str) -> bool:
    """Whether a value with this name is hidden unseen; case, dashes, dots and underscores do not matter."""
    words = _words(name)
    endings = ("".join(words[start:]) for start in range(max(0, len(words) - 3), len(words)))
    whole = "".join(_words(name.rpartition(".")[2]))
    return any(map(_SENSITIVE_ENDING.fullmatch, endings)) or bool(_SENSITIVE_WHOLE.fullmatch(whole))


def _words(name: str) -> list[str]:
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdecimal():
        words.pop()
    return words


def _redact(value: object, inside: str, depth: int) -> object:
    if value is None or isinstance(value, bool | float):
        return value
    try:
        if isinstance(value, int):
            return _redact_int(value)
        if isinstance(value, Mapping | list | tuple | set | frozenset):
            return _redact_items(value, inside, depth + 1) if depth < 8 else TOO_DEEP
        return redact_text(_text_of(value))
    except Exception:  # noqa: BLE001  a foreign __str__ may do anything, and no log line may fail for it
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
    told_nothing = value is None or isinstance(value, bool) or value == ""
    if not told_nothing and is_sensitive_name(f"{inside}.{name}"[-80:]):
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


def _unescape_digits(match: re.Match[str]) -> str:
    """Digits and what may stand between them, written as escapes; any other escape stays as it is."""
    point = match["point"]
    plain = chr(int(point, 16)) if point else unquote(match[0].replace("\\x", "%"))
    return plain if _DIGITS_AND_SPACERS.fullmatch(plain) else match[0]


def _hide_rest(match: re.Match[str]) -> str:
    return match["kept"] + REDACTED


def _hide_tokens(text: str) -> str:
    text = _TOKEN.sub(_hide_token, text)
    text = _BEARER.sub(_hide_rest, text)
    text = _BASIC.sub(_hide_rest, text)
    return _URL_PASSWORD.sub(_hide_url_password, text)


def _hide_token(match: re.Match[str]) -> str:
    return match[0] if _SNAKE_CASE.fullmatch(match["rest"]) else _hide_rest(match)


def _hide_url_password(match: re.Match[str]) -> str:
    return f"{match['kept'] or match['other']}{REDACTED}@"


def _hide_code(match: re.Match[str]) -> str:
    return match[0] if _HARMLESS_BEFORE_CODE.fullmatch(match["before"] or "") else _hide_rest(match)


def _hide_assigned(text: str) -> str:
    """Values in `name=value`, `name: value` and in dictionaries written out as text."""
    shown, position = [], 0
    found = _NAME.search(text)
    while found:
        # A bare `code` is one-time only when digits follow; _CODE looks at those.
        hides = found["name"].lower() != "code" and is_sensitive_name(found["name"][-80:])
        value = _VALUE.match(text, found.end()) if hides else None
        if value:
            quote = value["quote"] or ""
            shown += [text[position : found.end()], quote, REDACTED, quote]
            position = value.end()
        found = _NAME.search(text, value.end() if value else found.end())
    return "".join([*shown, text[position:]])


def _hide_numbers(match: re.Match[str]) -> str:
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
