"""Form fields are parsed in any digits, and with the invisible characters of pasted text."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.checkout.pages.form_fields import (
    FieldError,
    InvalidFieldsError,
    normalize_digits,
    parse_card,
    parse_code,
    parse_method,
    parse_wallet,
)
from services.checkout.providers.interface import Card, Wallet
from shared.domain.payment_methods import PaymentMethod, is_card_number
from shared.platform.card_numbers import MAX_SEPARATORS
from shared.platform.redaction import REDACTED, redact_text

TODAY = date(2026, 11, 15)
CARD = {"card_number": "4242424242424242", "expiry": "12/30", "security_code": "123"}


def _field_errors(fields: dict[str, str], method: PaymentMethod | None = None) -> dict[str, FieldError]:
    with pytest.raises(InvalidFieldsError) as caught:
        if method is None:
            parse_card(fields, TODAY)
        else:
            parse_wallet(fields, method, TODAY)
    return dict(caught.value.errors)


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("0912345678", "0912345678"),
        ("٠٩١٢٣٤٥٦٧٨", "0912345678"),
        ("۰۹۱۲۳۴۵۶۷۸", "0912345678"),
        ("\u2066091\u2069 234\u00a056-78\u200f", "0912345678"),
        ("\u202a091\u202c–234\u2009567٨", "091" + "234567" + "8"),
        ("09l2345678", None),
        ("091234567²", None),
        ("", ""),
    ],
)
def test_digits_are_normalized(text: str, digits: str | None) -> None:
    assert normalize_digits(text) == digits


@given(
    st.lists(st.text(st.characters(), min_size=1, max_size=MAX_SEPARATORS + 1), min_size=3, max_size=3)
    | st.lists(
        st.text(st.characters(categories=["Zs", "Cf", "Pd", "Cc"]), max_size=9), min_size=3, max_size=3
    )
)
def test_card_number_that_is_accepted_is_never_logged(gaps: list[str]) -> None:
    """The form and the redaction of logs agree on what may stand between digits."""
    spelled = "4000{}0000{}0000{}9995".format(*gaps)
    if normalize_digits(spelled) == "4000000000009995":
        assert redact_text(spelled) == REDACTED


@pytest.mark.parametrize(
    "gap",
    [" ", ".", "/", "-", "\u2013", "\u2014", "\t", "\r\n", "\u00ad", "\u200f \u200e", " " * MAX_SEPARATORS],
)
def test_separators_of_a_card_number_are_accepted_and_redacted(gap: str) -> None:
    spelled = gap.join(("4000", "0000", "0000", "9995"))
    assert normalize_digits(spelled) == "4000000000009995"
    assert redact_text(f"card {spelled}.") == f"card {REDACTED}."


def test_too_many_separators_in_a_row_are_refused() -> None:
    assert normalize_digits("4000" + " " * (MAX_SEPARATORS + 1) + "0000") is None
    assert normalize_digits("\u200f" * 20 + "4000") == "4000"


@given(st.text(max_size=40))
def test_normalized_digits_are_ascii_digits_or_none(text: str) -> None:
    found = normalize_digits(text)
    assert found is None or found == "" or (found.isascii() and found.isdecimal())


@pytest.mark.parametrize(
    "spelling", ["12/30", "12 / 30", "1230", "12/2030", "12-30", "١٢/٣٠", "12.2030", "12\u200f/30"]
)
def test_card_is_parsed_in_any_spelling(spelling: str) -> None:
    fields = {**CARD, "card_number": "٤٢٤٢ 4242-4242 4242", "expiry": spelling, "security_code": "١٢٣"}
    assert parse_card(fields, TODAY) == Card("4242424242424242", 12, 2030, "123")


@pytest.mark.parametrize(
    ("field", "text", "error"),
    [
        ("card_number", "", FieldError.CARD_NUMBER_MISSING),
        ("card_number", "4242424242424241", FieldError.CARD_NUMBER_WRONG),
        ("card_number", "4242", FieldError.CARD_NUMBER_WRONG),
        ("card_number", "0" * 40, FieldError.CARD_NUMBER_WRONG),
        ("card_number", "4242x4242424242424", FieldError.CARD_NUMBER_WRONG),
        ("expiry", "", FieldError.EXPIRY_MISSING),
        ("expiry", "13/30", FieldError.EXPIRY_WRONG),
        ("expiry", "00/30", FieldError.EXPIRY_WRONG),
        ("expiry", "12", FieldError.EXPIRY_WRONG),
        ("expiry", "12/3", FieldError.EXPIRY_WRONG),
        ("expiry", "1/2/30", FieldError.EXPIRY_WRONG),
        ("expiry", "12/99", FieldError.EXPIRY_WRONG),
        ("expiry", "soon", FieldError.EXPIRY_WRONG),
        ("expiry", "10/26", FieldError.EXPIRY_PAST),
        ("security_code", "", FieldError.SECURITY_CODE_WRONG),
        ("security_code", "12", FieldError.SECURITY_CODE_WRONG),
        ("security_code", "12345", FieldError.SECURITY_CODE_WRONG),
    ],
)
def test_invalid_card_fields_have_their_own_errors(field: str, text: str, error: FieldError) -> None:
    assert _field_errors({**CARD, field: text}) == {field: error}


def test_card_is_valid_until_the_end_of_its_month() -> None:
    assert parse_card({**CARD, "expiry": "11/26"}, TODAY).expiry_month == 11


def test_all_errors_of_a_card_are_reported_together() -> None:
    assert set(_field_errors({})) == {"card_number", "expiry", "security_code"}


@pytest.mark.parametrize(
    ("digits", "is_one"),
    [
        ("4242424242424242", True),
        ("6395043835180860", True),
        ("4000000000000259", True),
        ("4000000000000258", False),
        ("", False),
        ("0" * 11, False),
        ("0" * 12, True),
        ("0" * 20, False),
        ("٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢", False),
    ],
)
def test_card_numbers_are_checked_by_length_and_luhn(digits: str, is_one: bool) -> None:
    assert is_card_number(digits) is is_one


@given(st.text("0123456789", min_size=11, max_size=18))
def test_exactly_one_check_digit_is_valid(digits: str) -> None:
    valid = [digits + str(check) for check in range(10) if is_card_number(digits + str(check))]
    assert len(valid) == 1


@pytest.mark.parametrize(
    "text",
    [
        "0913632323",
        "+218913632323",
        "00218913632323",
        "218913632323",
        "+218 0 91 363 2323",
        "٠٩١٣٦٣٢٣٢٣",
        "\u2066+218 91-3632323\u2069",
    ],
)
def test_phones_are_normalized(text: str) -> None:
    fields = {"phone": text, "birth_year": "١٩٩٩"}
    assert parse_wallet(fields, PaymentMethod.SADAD, TODAY) == Wallet("0913632323", 1999)


@pytest.mark.parametrize(
    ("method", "text", "error"),
    [
        (PaymentMethod.SADAD, "0923632323", FieldError.PHONE_PREFIX),  # right, but not for this wallet
        (PaymentMethod.SADAD, "+218943632323", FieldError.PHONE_PREFIX),
        (PaymentMethod.ADFALI, "0973632323", FieldError.PHONE_PREFIX),
        (PaymentMethod.ADFALI, "0903632323", FieldError.PHONE_PREFIX),
        (PaymentMethod.SADAD, "0823632323", FieldError.PHONE_WRONG),
        (PaymentMethod.ADFALI, "091363232", FieldError.PHONE_WRONG),
        (PaymentMethod.ADFALI, "09136323233", FieldError.PHONE_WRONG),
        (PaymentMethod.ADFALI, "+216913632323", FieldError.PHONE_WRONG),
        (PaymentMethod.ADFALI, "0913632323+", FieldError.PHONE_WRONG),
        (PaymentMethod.ADFALI, "++218913632323", FieldError.PHONE_WRONG),
        (PaymentMethod.ADFALI, "call me", FieldError.PHONE_WRONG),
        (PaymentMethod.ADFALI, " ", FieldError.PHONE_MISSING),
    ],
)
def test_invalid_phones_have_their_own_errors(method: PaymentMethod, text: str, error: FieldError) -> None:
    assert _field_errors({"phone": text, "birth_year": "1999"}, method) == {"phone": error}


@pytest.mark.parametrize(("text", "year"), [("1940", 1940), ("2014", 2014), ("١٩٩٩", 1999)])
def test_valid_birth_years_are_accepted(text: str, year: int) -> None:
    fields = {"phone": "0913632323", "birth_year": text}
    assert parse_wallet(fields, PaymentMethod.SADAD, TODAY).birth_year == year


@pytest.mark.parametrize("text", ["1939", "2015", "99", "", "year"])
def test_invalid_birth_years_are_refused(text: str) -> None:
    fields = {"phone": "0913632323", "birth_year": text}
    assert _field_errors(fields, PaymentMethod.SADAD) == {"birth_year": FieldError.BIRTH_YEAR_WRONG}


def test_only_sadad_requires_a_birth_year() -> None:
    assert parse_wallet({"phone": "0921234567"}, PaymentMethod.ADFALI, TODAY) == Wallet("0921234567", None)


@pytest.mark.parametrize(
    ("method", "text", "error"),
    [
        (PaymentMethod.SADAD, "", FieldError.CODE_MISSING),
        (PaymentMethod.SADAD, "abc", FieldError.CODE_MISSING),
        (PaymentMethod.SADAD, "1111", FieldError.CODE_WRONG_LENGTH),
        (PaymentMethod.ADFALI, "111111", FieldError.CODE_WRONG_LENGTH),
    ],
)
def test_invalid_codes_have_their_own_errors(method: PaymentMethod, text: str, error: FieldError) -> None:
    with pytest.raises(InvalidFieldsError) as caught:
        parse_code({"code": text}, method)
    assert caught.value.errors == {"code": error}


def test_code_is_normalized() -> None:
    assert parse_code({"code": " ١١١-111 "}, PaymentMethod.CARD) == "111111"


@pytest.mark.parametrize("text", ["", "cash", "CARD"])
def test_unknown_methods_are_refused(text: str) -> None:
    with pytest.raises(InvalidFieldsError):
        parse_method({"method": text})


def test_errors_never_contain_what_was_entered() -> None:
    with pytest.raises(InvalidFieldsError) as caught:
        parse_card({**CARD, "card_number": "4242424242424241"}, TODAY)
    assert "4242" not in str(caught.value)
    assert "4242" not in repr(Card("4242424242424242", 12, 2030, "123"))
    assert "0913632323" not in repr(Wallet("0913632323", 1999))
