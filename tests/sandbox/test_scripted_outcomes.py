"""Every row of the table of sandbox outcomes, and similar inputs."""

from datetime import date

import pytest

from services.sandbox.scripted_outcomes import (
    SILENT_OUTCOMES,
    Card,
    ChargeResult,
    ChargeStatus,
    DeclineReason,
    ScriptedOutcome,
    Wallet,
    initial_result,
    result_after_code,
    result_after_settlement,
    scripted_outcome,
)
from shared.domain.payment_methods import PaymentMethod

TODAY = date(2026, 11, 15)

PAID = ChargeResult(ChargeStatus.PAID)
DECLINED = ChargeResult(ChargeStatus.DECLINED, DeclineReason.DECLINED)
NO_FUNDS = ChargeResult(ChargeStatus.DECLINED, DeclineReason.INSUFFICIENT_FUNDS)
NOT_SUBSCRIBED = ChargeResult(ChargeStatus.DECLINED, DeclineReason.NOT_SUBSCRIBED)
WRONG_PHONE = ChargeResult(ChargeStatus.DECLINED, DeclineReason.WRONG_PHONE_OR_BIRTH_YEAR)
NEEDS_CODE = ChargeResult(ChargeStatus.NEEDS_CODE)
WRONG_CODE = ChargeResult(ChargeStatus.NEEDS_CODE, DeclineReason.WRONG_CODE)


@pytest.mark.parametrize(
    ("number", "result", "is_silent"),
    [
        ("4242424242424242", PAID, False),
        ("4000000000000002", DECLINED, False),
        ("4000000000009995", NO_FUNDS, False),
        ("6395043835180860", NEEDS_CODE, False),
        ("4000000000000077", PAID, True),
        ("4000000000000341", DECLINED, True),
        ("4000000000000259", DECLINED, False),
        # Any other valid card number.
        ("5555555555554444", PAID, False),
        ("378282246310005", PAID, False),
        # One wrong digit.
        ("4242424242424241", DECLINED, False),
        ("4000000000000078", DECLINED, False),
        # Not a card number.
        ("0", DECLINED, False),
        ("4242 4242 4242 4242", DECLINED, False),
        ("٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢", DECLINED, False),
        ("card", DECLINED, False),
    ],
)
def test_outcomes_of_cards(number: str, result: ChargeResult, is_silent: bool) -> None:
    script = scripted_outcome(PaymentMethod.CARD, Card(number, 12, 2030), TODAY)
    assert initial_result(script) == result
    assert (script in SILENT_OUTCOMES) is is_silent


@pytest.mark.parametrize(
    ("month", "year", "result"),
    [
        (11, 2026, PAID),  # valid until the end of its month
        (10, 2026, DECLINED),
        (12, 2025, DECLINED),
        (1, 2027, PAID),
    ],
)
def test_an_expired_card_is_declined(month: int, year: int, result: ChargeResult) -> None:
    """Any expiry date in the future is accepted."""
    assert (
        initial_result(scripted_outcome(PaymentMethod.CARD, Card("4242424242424242", month, year), TODAY))
        == result
    )


@pytest.mark.parametrize("number", ["4000000000000077", "6395043835180860"])
def test_expired_card_is_declined_whatever_its_number(number: str) -> None:
    assert scripted_outcome(PaymentMethod.CARD, Card(number, 1, 2020), TODAY) is ScriptedOutcome.DECLINES


@pytest.mark.parametrize(
    ("method", "phone", "birth_year", "result"),
    [
        ("sadad", "0913632323", 1999, NEEDS_CODE),
        ("sadad", "0913632323", 1998, WRONG_PHONE),
        ("sadad", "0913632323", None, WRONG_PHONE),
        ("adfali", "0913632323", None, NEEDS_CODE),
        ("adfali", "0921234567", None, NEEDS_CODE),
        # Any other phone, and any birth year.
        ("sadad", "0912345678", 1940, NEEDS_CODE),
        ("sadad", "0931234567", None, NEEDS_CODE),
        ("adfali", "0961234567", 2001, NEEDS_CODE),
        # Not subscribed.
        ("sadad", "0912345000", 1999, NOT_SUBSCRIBED),
        ("adfali", "0921234000", None, NOT_SUBSCRIBED),
        # Insufficient balance, reported after the code.
        ("sadad", "0912345995", 1999, NEEDS_CODE),
        ("adfali", "0921234995", None, NEEDS_CODE),
        # Not a valid phone number of this method.
        ("sadad", "0921234567", 1999, WRONG_PHONE),
        ("sadad", "0921234000", 1999, WRONG_PHONE),
        ("adfali", "0971234567", None, WRONG_PHONE),
        ("adfali", "092123456", None, WRONG_PHONE),
        ("adfali", "09212345678", None, WRONG_PHONE),
        ("adfali", "+218921234567", None, WRONG_PHONE),
        ("adfali", "٠٩٢١٢٣٤٥٦٧", None, WRONG_PHONE),
        ("adfali", "0921234567\n", None, WRONG_PHONE),
    ],
)
def test_outcomes_of_wallets(method: str, phone: str, birth_year: int | None, result: ChargeResult) -> None:
    """The phone decides; for one subscriber also the birth year."""
    assert initial_result(scripted_outcome(PaymentMethod(method), Wallet(phone, birth_year), TODAY)) == result


@pytest.mark.parametrize(
    ("method", "details", "code", "result"),
    [
        ("card", Card("6395043835180860", 12, 2030), "111111", PAID),
        ("card", Card("6395043835180860", 12, 2030), "1111", WRONG_CODE),
        ("sadad", Wallet("0913632323", 1999), "111111", PAID),
        ("sadad", Wallet("0913632323", 1999), "1111", WRONG_CODE),
        ("sadad", Wallet("0913632323", 1999), "222222", WRONG_CODE),
        ("adfali", Wallet("0921234567", None), "1111", PAID),
        ("adfali", Wallet("0921234567", None), "111111", WRONG_CODE),
        ("adfali", Wallet("0921234567", None), "2222", WRONG_CODE),
        ("sadad", Wallet("0912345995", 1999), "111111", NO_FUNDS),
        ("adfali", Wallet("0921234995", None), "1111", NO_FUNDS),
        ("adfali", Wallet("0921234995", None), "2222", NO_FUNDS),
    ],
)
def test_outcomes_of_codes(method: str, details: Card | Wallet, code: str, result: ChargeResult) -> None:
    """Each method has one right code. Without funds, no code is accepted."""
    script = scripted_outcome(PaymentMethod(method), details, TODAY)
    assert initial_result(script) == NEEDS_CODE
    assert result_after_code(script, PaymentMethod(method), code) == result


@pytest.mark.parametrize(
    ("before", "outcome", "after"),
    [
        (DECLINED, ChargeStatus.PAID, PAID),
        (NO_FUNDS, ChargeStatus.PAID, PAID),
        (WRONG_CODE, ChargeStatus.PAID, PAID),
        (PAID, ChargeStatus.PAID, PAID),
        (PAID, ChargeStatus.DECLINED, PAID),
        (NEEDS_CODE, ChargeStatus.DECLINED, DECLINED),
        (WRONG_CODE, ChargeStatus.DECLINED, DECLINED),
        (NO_FUNDS, ChargeStatus.DECLINED, NO_FUNDS),
    ],
)
def test_settlement_changes_any_result_except_paid(
    before: ChargeResult, outcome: ChargeStatus, after: ChargeResult
) -> None:
    """A declined charge keeps the reason of its decline."""
    assert result_after_settlement(before, outcome) == after


def test_names_of_scripted_outcomes_contain_no_digits() -> None:
    """The ledger stores these names."""
    assert not any(character.isdecimal() for script in ScriptedOutcome for character in script)


def test_repr_of_card_and_wallet_shows_no_digits() -> None:
    """They may appear in a traceback."""
    shown = repr((Card("4242424242424242", 11, 2031), Wallet("0913632323", 1999)))
    assert not any(character.isdecimal() for character in shown)
