"""Parses and validates the form fields of customers. Pure.

The script of the page makes the same checks while customers type; these checks are authoritative.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from services.checkout.providers.interface import Card, Wallet
from shared.domain.payment_methods import WALLET_PREFIXES, PaymentMethod, is_card_number
from shared.platform.card_numbers import MAX_SEPARATORS, SEPARATORS

_OLDEST_BIRTH_YEAR = 1940
_YOUNGEST_AGE = 12
_FURTHEST_EXPIRY_YEARS = 20

_SEPARATOR = re.compile(f"[{SEPARATORS}]")


def normalize_digits(text: str, *, also: str = "") -> str | None:
    """Return the digits as 0 to 9, together with characters of `also`, or None if there is anything else.

    Accepts Arabic-Indic digits, and skips spaces, dashes and invisible marks between digits, a few in a row.
    """
    kept: list[str] = []
    skipped = 0
    for character in text:
        is_separator = character not in also and _SEPARATOR.match(character)
        skipped = skipped + 1 if is_separator else 0
        if is_separator and (skipped <= MAX_SEPARATORS or not kept):
            continue
        if character in also:
            kept.append(character)
        elif character.isdecimal():
            kept.append(str(unicodedata.decimal(character)))
        else:
            return None
    return "".join(kept)


class FieldError(StrEnum):
    """What is wrong with a field. labels.py has a text for each."""

    METHOD_MISSING = "method_missing"
    CARD_NUMBER_MISSING = "card_number_missing"
    CARD_NUMBER_WRONG = "card_number_wrong"
    EXPIRY_MISSING = "expiry_missing"
    EXPIRY_WRONG = "expiry_wrong"
    EXPIRY_PAST = "expiry_past"
    SECURITY_CODE_WRONG = "security_code_wrong"
    PHONE_MISSING = "phone_missing"
    PHONE_WRONG = "phone_wrong"
    PHONE_PREFIX = "phone_prefix"
    """A mobile number that this wallet does not take."""
    BIRTH_YEAR_WRONG = "birth_year_wrong"
    CODE_MISSING = "code_missing"
    CODE_WRONG_LENGTH = "code_wrong_length"


class InvalidFieldsError(Exception):
    """Some fields are invalid. `errors` maps fields to errors and never contains what was entered."""

    def __init__(self, errors: Mapping[str, FieldError]) -> None:
        super().__init__(", ".join(f"{name}: {error}" for name, error in errors.items()))
        self.errors = errors


CODE_LENGTHS = {PaymentMethod.CARD: 6, PaymentMethod.SADAD: 6, PaymentMethod.ADFALI: 4}

_EXPIRY_LENGTHS = [(1, 2), (2, 2), (1, 4), (2, 4)]


@dataclass(slots=True)
class _FieldReader:
    """Collects the errors of all fields, so that the page shows them together."""

    fields: Mapping[str, str]
    errors: dict[str, FieldError]

    def text(self, name: str) -> str:
        return self.fields.get(name, "").strip()

    def add_error(self, name: str, error: FieldError) -> None:
        self.errors.setdefault(name, error)

    def raise_errors(self) -> None:
        if self.errors:
            raise InvalidFieldsError(self.errors)


def parse_method(fields: Mapping[str, str]) -> PaymentMethod:
    try:
        return PaymentMethod(fields.get("method", ""))
    except ValueError:
        raise InvalidFieldsError({"method": FieldError.METHOD_MISSING}) from None


def parse_card(fields: Mapping[str, str], today: date) -> Card:
    reader = _FieldReader(fields, {})
    number = _card_number(reader)
    month, year = _expiry(reader, today)
    security_code = normalize_digits(reader.text("security_code")) or ""
    if len(security_code) not in (3, 4):
        reader.add_error("security_code", FieldError.SECURITY_CODE_WRONG)
    reader.raise_errors()
    return Card(number, month, year, security_code)


def parse_wallet(fields: Mapping[str, str], method: PaymentMethod, today: date) -> Wallet:
    reader = _FieldReader(fields, {})
    phone = _phone(reader, method)
    birth_year = _birth_year(reader, today) if method is PaymentMethod.SADAD else None
    reader.raise_errors()
    return Wallet(phone, birth_year)


def parse_code(fields: Mapping[str, str], method: PaymentMethod) -> str:
    text = fields.get("code", "").strip()
    code = normalize_digits(text) if text else None
    if not text or code is None:
        raise InvalidFieldsError({"code": FieldError.CODE_MISSING})
    if len(code) != CODE_LENGTHS[method]:
        raise InvalidFieldsError({"code": FieldError.CODE_WRONG_LENGTH})
    return code


def _card_number(reader: _FieldReader) -> str:
    text = reader.text("card_number")
    digits = normalize_digits(text) or ""
    if not text:
        reader.add_error("card_number", FieldError.CARD_NUMBER_MISSING)
    elif not is_card_number(digits):
        reader.add_error("card_number", FieldError.CARD_NUMBER_WRONG)
    return digits


def _expiry(reader: _FieldReader, today: date) -> tuple[int, int]:
    """Accept 08/29, 8/2029 and 0829."""
    text = reader.text("expiry")
    if not text:
        reader.add_error("expiry", FieldError.EXPIRY_MISSING)
        return 0, 0
    digits = normalize_digits(text, also="/") or ""
    month_text, _, year_text = digits.partition("/") if "/" in digits else (digits[:2], "/", digits[2:])
    lengths = len(month_text), len(year_text)
    if not (month_text.isdecimal() and year_text.isdecimal() and lengths in _EXPIRY_LENGTHS):
        reader.add_error("expiry", FieldError.EXPIRY_WRONG)
        return 0, 0
    month = int(month_text)
    year = int(year_text) if len(year_text) == 4 else 2000 + int(year_text)
    if not 1 <= month <= 12 or year > today.year + _FURTHEST_EXPIRY_YEARS or year < 2000:
        reader.add_error("expiry", FieldError.EXPIRY_WRONG)
    elif (year, month) < (today.year, today.month):
        reader.add_error("expiry", FieldError.EXPIRY_PAST)
    return month, year


def _phone(reader: _FieldReader, method: PaymentMethod) -> str:
    """Accept 09xxxxxxxx, +2189xxxxxxxx and 002189xxxxxxxx."""
    text = reader.text("phone")
    if not text:
        reader.add_error("phone", FieldError.PHONE_MISSING)
        return ""
    typed = normalize_digits(text, also="+") or ""
    digits = typed.lstrip("+")
    for prefix in ("00218", "218"):
        if digits.startswith(prefix):
            digits = "0" + digits.removeprefix(prefix).removeprefix("0")
            break
    if not (typed.rfind("+") <= 0 and len(digits) == 10 and digits.startswith("09")):
        reader.add_error("phone", FieldError.PHONE_WRONG)
    elif not digits.startswith(WALLET_PREFIXES[method]):
        reader.add_error("phone", FieldError.PHONE_PREFIX)
    return digits


def _birth_year(reader: _FieldReader, today: date) -> int:
    digits = normalize_digits(reader.text("birth_year")) or ""
    year = int(digits) if len(digits) == 4 else 0
    if not _OLDEST_BIRTH_YEAR <= year <= today.year - _YOUNGEST_AGE:
        reader.add_error("birth_year", FieldError.BIRTH_YEAR_WRONG)
    return year
