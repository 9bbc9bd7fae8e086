"""Secrets in text: keys and tokens, passwords, values behind a telling name, codes, and numbers."""

import re

from shared.platform.redaction.names import is_sensitive_name
from shared.platform.redaction.numbers import REDACTED, SPACER, hide_numbers, unescape_digits

_TOKEN = re.compile(r"(?<![A-Za-z0-9_])(?P<kept>(?:pk|sk|at|whsec|inv)_)(?P<rest>[A-Za-z0-9_+/=-]{6,})")
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
    rf"\\*[\"']?\s{{0,3}}(?:[=:]|is\b)?\s{{0,3}}\\*[\"']?)(?<!\w)\d(?:{SPACER}?\d){{3,7}}(?!\w)",
    re.IGNORECASE,
)
_HARMLESS_BEFORE_CODE = re.compile(
    r"status|error|exit|response|event|country|return|reason|http|sql|sqlstate|state|postal|zip|currency|area",
    re.IGNORECASE,
)

# Cheap looks that spare most texts the patterns above.
_QUIET = re.compile(r"[^\d=:_]*")
_TOKEN_HINTS = ("pk_", "sk_", "at_", "whsec_", "inv_", "://", "bearer", "basic")
_NAME_HINTS = (
    *("pass", "pwd", "secret", "token", "authoriz", "cookie", "credential", "session", "key", "signature"),
    *("card", "exp", "cvc", "cvv", "csc", "code", "otp", "pin", "pan"),
    *("phone", "mobile", "msisdn", "tel", "birth", "dob"),
)


def redact_text(text: str) -> str:
    """`text` with every secret, card number, code and phone number in it replaced."""
    lowered = text.lower()
    if _QUIET.fullmatch(text) and "bearer" not in lowered and "basic" not in lowered:
        return text
    text = unescape_digits(text)
    if any(hint in lowered for hint in _TOKEN_HINTS):
        text = _hide_tokens(text)
    if any(hint in lowered for hint in _NAME_HINTS):
        text = _HEADER_LINE.sub(_hide_rest, text)
        text = _hide_assigned(text)
        text = _CODE.sub(_hide_code, text)
    return hide_numbers(text)


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
