"""Finds secrets in text: tokens and passwords, values behind a sensitive name, codes, card and phone numbers."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from urllib.parse import unquote

from shared.platform.card_numbers import LENGTHS, MAX_SEPARATORS, SEPARATORS

REDACTED = "[redacted]"

# A name is sensitive when its last words are one of these: `new_password`, `X-API-Key`, `accessToken`.
_SENSITIVE_ENDING = re.compile(
    r"(?:password|passwordhash|passwd|pwd|passphrase|secret|token|authorization|cookie|credential|sessionid"
    r"|(?:api|access|secret|private|signing|signature|encryption|master|data|session|provider|customer)key|signature"
    r"|cardnumber|cardno|cardpan|cardexpiry|cardexpirydate|(?:expiry|exp)(?:month|year)"
    r"|cvc|cvv|csc|otp|(?:card|security|onetime|verification|confirmation|sms|pin|otp)code"
    r"|phone|mobile|(?:phone|mobile)(?:number|no)|msisdn|telephone"
    r"|birthyear|birthdate|birthday|dateofbirth|yearofbirth|dob)s?"
)
# Too common as an ending (`status_code`, `lifespan`): sensitive only when they are the whole name.
_SENSITIVE_WHOLE = re.compile(r"(?:code|pan|pin|tel|expiry|expirydate)s?")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# What the checkout accepts between digits; and a plus, which is a space in forms, and a longer dash.
_SPACER = rf"[{SEPARATORS}+\u2015]"
_TOKEN = re.compile(r"(?<![A-Za-z0-9_])(?P<kept>(?:pk|sk|at|whsec|inv)_)(?P<rest>[A-Za-z0-9_+/=-]{6,})")
# Names such as `at_least_once` or the constraint `pk_payment_intents` are not keys.
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
_NOT_A_SECRET_CODE = re.compile(
    r"status|error|exit|response|event|country|return|reason|http|sql|sqlstate|state|postal|zip|currency|area",
    re.IGNORECASE,
)

# Cheap checks, so that most texts are not searched with the patterns above.
_QUIET = re.compile(r"[^\d=:_]*")
_TOKEN_HINTS = ("pk_", "sk_", "at_", "whsec_", "inv_", "://", "bearer", "basic")
_NAME_HINTS = (
    *("pass", "pwd", "secret", "token", "authoriz", "cookie", "credential", "session", "key", "signature"),
    *("card", "exp", "cvc", "cvv", "csc", "code", "otp", "pin", "pan"),
    *("phone", "mobile", "msisdn", "tel", "birth", "dob"),
)

_DIGITS_AND_GAPS = re.compile(rf"(?:\d|{_SPACER})+")
# Dots, slashes and line ends tell a reader too much to be decoded everywhere; between digits they are.
_PLAIN_GAPS = re.compile(rf"(?:(?![\x00-\x1f\x7f-\x9f\u2028\u2029./]){_SPACER})+")
_UUID = r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9A-Za-z])"
_AFTER_ESCAPE = r"(?<=\\[nrt])|(?<=%[0-9a-fA-F]{2})|(?<=\\x[0-9a-fA-F]{2})|(?<=\\u[0-9a-fA-F]{4})"
_NUMBER = re.compile(
    rf"(?P<uuid>{_UUID})"
    rf"|(?:(?<![\dA-Za-z])|{_AFTER_ESCAPE})\d(?:{_SPACER}{{0,{MAX_SEPARATORS}}}\d){{9,}}(?![\dA-Za-z])"
)
_DATE = r"20\d\d[-/.][01]\d[-/.][0-3]\d|[0-3]\d[-/.][01]\d[-/.]20\d\d"
_ADDRESS = r"\d{1,3}(?:\.\d{1,3}){3}"
# Days, IPv4 addresses, and decimal numbers: nobody writes a dot after the third digit of a card number and no other.
_ORDINARY = re.compile(rf"(?:(?:{_DATE})\s?)+|(?:{_ADDRESS}\s?)+|\d{{1,3}}\.\d+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_PHONE = re.compile(r"(?:(?:00)?2180?|0)9\d{8}")
_ESCAPE = re.compile(
    r"(?:%[0-9a-fA-F]{2})+|(?:\\x[0-9a-fA-F]{2})+|\\u(?P<point>[0-9a-fA-F]{4})|(?P<line_end>\\[nrtfv])"
)
_ESCAPED_GAP = re.compile(
    rf"(?<=\d)(?:{_SPACER}|%[0-9a-fA-F]{{2}}|\\x[0-9a-fA-F]{{2}}|\\u[0-9a-fA-F]{{4}}|\\[nrtfv])+(?=\d)"
)
_TEN_DIGITS = re.compile(rf"\d(?:\D{{0,{MAX_SEPARATORS}}}\d){{9}}")


def redact_text(text: str) -> str:
    """Return `text` with every secret, card number, code and phone number in it replaced."""
    lowered = text.lower()
    if _QUIET.fullmatch(text) and "bearer" not in lowered and "basic" not in lowered:
        return text
    text = _unescape_digits(text)
    if any(hint in lowered for hint in _TOKEN_HINTS):
        text = _hide_tokens(text)
    if any(hint in lowered for hint in _NAME_HINTS):
        text = _HEADER_LINE.sub(_hide_rest, text)
        text = _hide_assigned(text)
        text = _CODE.sub(_hide_code, text)
    return _hide_numbers(text)


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
    return match[0] if _NOT_A_SECRET_CODE.fullmatch(match["before"] or "") else _hide_rest(match)


def _hide_assigned(text: str) -> str:
    """Hide values in `name=value`, `name: value` and in dictionaries written as text."""
    shown, position = [], 0
    found = _NAME.search(text)
    while found:
        # A bare `code` is a one-time code only if digits follow; _CODE handles those.
        hides = found["name"].lower() != "code" and is_sensitive_name(found["name"][-80:])
        value = _VALUE.match(text, found.end()) if hides else None
        if value:
            quote = value["quote"] or ""
            shown += [text[position : found.end()], quote, REDACTED, quote]
            position = value.end()
        found = _NAME.search(text, value.end() if value else found.end())
    return "".join([*shown, text[position:]])


@lru_cache(maxsize=2048)
def is_sensitive_name(name: str) -> bool:
    """Whether a value with this name is always hidden; case, dashes, dots and underscores do not matter."""
    words = _words(name)
    endings = ("".join(words[start:]) for start in range(max(0, len(words) - 3), len(words)))
    whole = "".join(_words(name.rpartition(".")[2]))
    return any(map(_SENSITIVE_ENDING.fullmatch, endings)) or bool(_SENSITIVE_WHOLE.fullmatch(whole))


def _words(name: str) -> list[str]:
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdecimal():
        words.pop()
    return words


def _hide_numbers(text: str) -> str:
    return _NUMBER.sub(_hide_in_run, text) if _TEN_DIGITS.search(text) else text


def _unescape_digits(text: str) -> str:
    """Decode escaped digits and escaped characters between them. Any other escape stays as it is."""
    if "\\" not in text and "%" not in text:
        return text
    return _ESCAPED_GAP.sub(_unescape_gap, _ESCAPE.sub(_unescape, text))


def _unescape(match: re.Match[str]) -> str:
    if match["line_end"]:
        return match[0]
    plain = _decode(match)
    has_digits = any(map(str.isdecimal, plain)) and _DIGITS_AND_GAPS.fullmatch(plain)
    return _CONTROL.sub(" ", plain) if has_digits or _PLAIN_GAPS.fullmatch(plain) else match[0]


def _unescape_gap(match: re.Match[str]) -> str:
    """Decode a gap between two digits, without putting line ends into the text."""
    plain = _ESCAPE.sub(_decode, match[0])
    return _CONTROL.sub(" ", plain) if _DIGITS_AND_GAPS.fullmatch(plain) else match[0]


def _decode(match: re.Match[str]) -> str:
    if match["line_end"]:
        return " "
    point = match["point"]
    return chr(int(point, 16)) if point else unquote(match[0].replace("\\x", "%"))


def _hide_in_run(match: re.Match[str]) -> str:
    text = match[0]
    if match["uuid"]:
        return text
    indexes = [index for index, character in enumerate(text) if character.isdecimal()]
    shown, position = [], 0
    for first, last in _numbers_to_hide(match, indexes):
        if indexes[first] >= position:
            shown += [text[position : indexes[first]], REDACTED]
        position = max(position, indexes[last] + 1)
    return "".join([*shown, text[position:]])


def _is_fraction(match: re.Match[str], index: int) -> bool:
    """Return whether a digit and a dot stand before this index of the match."""
    position = match.start() + index
    before = match.string[max(0, position - 2) : position]
    return len(before) == 2 and before[0].isdecimal() and before[1] == "."


def _numbers_to_hide(match: re.Match[str], indexes: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last digit of each card or phone number. It starts and ends where a group of digits does."""
    text = match[0]
    digits = [int(text[index]) for index in indexes]
    ends = [here + 1 != after for here, after in zip(indexes, [*indexes[1:], -1], strict=True)]
    luhn = _luhn_sums(digits)
    for first in range(len(digits)):
        if first and not ends[first - 1]:
            continue
        for last in range(first + 9, min(first + 19, len(digits))):
            if not ends[last]:
                continue
            written = text[indexes[first] : indexes[last] + 1]
            number = digits[first : last + 1]
            sums = luhn[last % 2]
            # Times in milliseconds begin with 1, and no card does. Three groups of four digits can be the beginning of
            # anything, so they count only by themselves.
            is_card = (
                len(number) in LENGTHS
                and (len(number) > LENGTHS[0] or len(number) == len(digits))
                and 2 <= number[0] <= 6
                and (sums[last + 1] - sums[first]) % 10 == 0
            )
            is_phone = number[0] in (0, 2) and _PHONE.fullmatch("".join(map(str, number)))
            if not (is_card or is_phone) or _ORDINARY.fullmatch(written):
                continue
            if len(written) > len(number) or not _is_fraction(match, indexes[first]):
                yield first, last


def _luhn_sums(digits: list[int]) -> tuple[list[int], list[int]]:
    """Return running Luhn sums for numbers that end at an even and at an odd index; a range is one subtraction."""
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits]
    even = [doubled[i] if i % 2 else digit for i, digit in enumerate(digits)]
    odd = [digit if i % 2 else doubled[i] for i, digit in enumerate(digits)]
    return list(accumulate(even, initial=0)), list(accumulate(odd, initial=0))
