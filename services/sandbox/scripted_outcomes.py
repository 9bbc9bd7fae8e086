"""What the bank and the wallets do with a card, a phone or a code. Pure; today is given."""

import re
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from shared.domain.payment_methods import PaymentMethod, is_card_number


class ChargeStatus(StrEnum):
    PAID = "paid"
    DECLINED = "declined"
    NEEDS_CODE = "needs_code"


class DeclineReason(StrEnum):
    DECLINED = "declined"
    INSUFFICIENT_FUNDS = "insufficient_funds"
    NOT_SUBSCRIBED = "not_subscribed"
    WRONG_CODE = "wrong_code"
    WRONG_PHONE_OR_BIRTH_YEAR = "wrong_phone_or_birth_year"


class ScriptedOutcome(StrEnum):
    """What a charge follows. Of all that led to it, this name is what the ledger keeps."""

    PAYS = "pays"
    DECLINES = "declines"
    LACKS_FUNDS = "lacks_funds"
    PAYS_IN_SILENCE = "pays_in_silence"
    DECLINES_IN_SILENCE = "declines_in_silence"
    ASKS_FOR_CODE = "asks_for_code"
    ASKS_FOR_CODE_AND_LACKS_FUNDS = "asks_for_code_and_lacks_funds"
    NOT_SUBSCRIBED = "not_subscribed"
    WRONG_PHONE_OR_BIRTH_YEAR = "wrong_phone_or_birth_year"


@dataclass(frozen=True, slots=True)
class Card:
    """Lives in memory for one request."""

    number: str = field(repr=False)
    expiry_month: int = field(repr=False)
    expiry_year: int = field(repr=False)


@dataclass(frozen=True, slots=True)
class Wallet:
    """Lives in memory for one request."""

    phone: str = field(repr=False)
    birth_year: int | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class ChargeResult:
    """How things are with a charge."""

    status: ChargeStatus
    reason: DeclineReason | None = None


SILENT_OUTCOMES = frozenset({ScriptedOutcome.PAYS_IN_SILENCE, ScriptedOutcome.DECLINES_IN_SILENCE})
"""What these write down is not told for a while."""

_PAID = ChargeResult(ChargeStatus.PAID)
_DECLINED = ChargeResult(ChargeStatus.DECLINED, DeclineReason.DECLINED)
_INSUFFICIENT_FUNDS = ChargeResult(ChargeStatus.DECLINED, DeclineReason.INSUFFICIENT_FUNDS)
_NEEDS_CODE = ChargeResult(ChargeStatus.NEEDS_CODE)

_BEGINNINGS = {
    ScriptedOutcome.PAYS: _PAID,
    ScriptedOutcome.DECLINES: _DECLINED,
    ScriptedOutcome.LACKS_FUNDS: _INSUFFICIENT_FUNDS,
    ScriptedOutcome.PAYS_IN_SILENCE: _PAID,
    ScriptedOutcome.DECLINES_IN_SILENCE: _DECLINED,
    ScriptedOutcome.ASKS_FOR_CODE: _NEEDS_CODE,
    ScriptedOutcome.ASKS_FOR_CODE_AND_LACKS_FUNDS: _NEEDS_CODE,
    ScriptedOutcome.NOT_SUBSCRIBED: ChargeResult(ChargeStatus.DECLINED, DeclineReason.NOT_SUBSCRIBED),
    ScriptedOutcome.WRONG_PHONE_OR_BIRTH_YEAR: ChargeResult(
        ChargeStatus.DECLINED, DeclineReason.WRONG_PHONE_OR_BIRTH_YEAR
    ),
}
_CARDS = {
    "4000000000000002": ScriptedOutcome.DECLINES,
    "4000000000009995": ScriptedOutcome.LACKS_FUNDS,
    "6395043835180860": ScriptedOutcome.ASKS_FOR_CODE,
    "4000000000000077": ScriptedOutcome.PAYS_IN_SILENCE,
    "4000000000000341": ScriptedOutcome.DECLINES_IN_SILENCE,
    "4000000000000259": ScriptedOutcome.DECLINES,
}
_PHONES = {
    PaymentMethod.SADAD: re.compile(r"09[13][0-9]{7}"),
    PaymentMethod.ADFALI: re.compile(r"09[1-6][0-9]{7}"),
}
_SADAD_SUBSCRIBER = Wallet("0913632323", 1999)
"""The one whose birth year is known, and has to be right."""
_RIGHT_CODES = {PaymentMethod.CARD: "111111", PaymentMethod.SADAD: "111111", PaymentMethod.ADFALI: "1111"}


def scripted_outcome(method: PaymentMethod, details: Card | Wallet, today: date) -> ScriptedOutcome:
    if isinstance(details, Card):
        return _script_of_card(details, today)
    return _script_of_wallet(method, details)


def initial_result(script: ScriptedOutcome) -> ChargeResult:
    return _BEGINNINGS[script]


def result_after_code(script: ScriptedOutcome, method: PaymentMethod, code: str) -> ChargeResult:
    """Where a charge stands that asked for a code and was given this one."""
    if script is ScriptedOutcome.ASKS_FOR_CODE_AND_LACKS_FUNDS:
        return _INSUFFICIENT_FUNDS
    return (
        _PAID
        if code == _RIGHT_CODES[method]
        else ChargeResult(ChargeStatus.NEEDS_CODE, DeclineReason.WRONG_CODE)
    )


def result_after_settlement(before: ChargeResult, outcome: ChargeStatus) -> ChargeResult:
    """Whatever it was before, except that paid stays paid."""
    if before.status is ChargeStatus.PAID or outcome is ChargeStatus.PAID:
        return _PAID
    return before if before.status is ChargeStatus.DECLINED else _DECLINED


def _script_of_card(card: Card, today: date) -> ScriptedOutcome:
    is_expired = (card.expiry_year, card.expiry_month) < (today.year, today.month)
    if is_expired or not is_card_number(card.number):
        return ScriptedOutcome.DECLINES
    return _CARDS.get(card.number, ScriptedOutcome.PAYS)


def _script_of_wallet(method: PaymentMethod, wallet: Wallet) -> ScriptedOutcome:
    if not _PHONES[method].fullmatch(wallet.phone):
        return ScriptedOutcome.WRONG_PHONE_OR_BIRTH_YEAR
    if wallet.phone.endswith("000"):
        return ScriptedOutcome.NOT_SUBSCRIBED
    if wallet.phone.endswith("995"):
        return ScriptedOutcome.ASKS_FOR_CODE_AND_LACKS_FUNDS
    is_known = method is PaymentMethod.SADAD and wallet.phone == _SADAD_SUBSCRIBER.phone
    if is_known and wallet.birth_year != _SADAD_SUBSCRIBER.birth_year:
        return ScriptedOutcome.WRONG_PHONE_OR_BIRTH_YEAR
    return ScriptedOutcome.ASKS_FOR_CODE
