"""Scripted outcomes: what the simulated bank and wallets do with a card, phone or code. Pure; `today` is passed in."""

import re
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from shared.domain.payment_methods import WALLET_PREFIXES, PaymentMethod, is_card_number


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
    """The script that a charge follows. The ledger stores this name instead of the card or phone."""

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
    """Kept in memory for one request only."""

    number: str = field(repr=False)
    expiry_month: int = field(repr=False)
    expiry_year: int = field(repr=False)


@dataclass(frozen=True, slots=True)
class Wallet:
    """Kept in memory for one request only."""

    phone: str = field(repr=False)
    birth_year: int | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class ChargeResult:
    """Status of a charge, with the reason if it was declined or needs another code."""

    status: ChargeStatus
    reason: DeclineReason | None = None


SILENT_OUTCOMES = frozenset({ScriptedOutcome.PAYS_IN_SILENCE, ScriptedOutcome.DECLINES_IN_SILENCE})
"""Outcomes that are recorded at once but answered late."""

_PAID = ChargeResult(ChargeStatus.PAID)
_DECLINED = ChargeResult(ChargeStatus.DECLINED, DeclineReason.DECLINED)
_INSUFFICIENT_FUNDS = ChargeResult(ChargeStatus.DECLINED, DeclineReason.INSUFFICIENT_FUNDS)
_NEEDS_CODE = ChargeResult(ChargeStatus.NEEDS_CODE)

_INITIAL_RESULTS = {
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
_PHONE = re.compile(r"09[0-9]{8}")
_KNOWN_SADAD_WALLET = Wallet("0913632323", 1999)
"""The only wallet whose birth year is checked."""
RIGHT_CODES = {PaymentMethod.CARD: "111111", PaymentMethod.SADAD: "111111", PaymentMethod.ADFALI: "1111"}


def scripted_outcome(method: PaymentMethod, details: Card | Wallet, today: date) -> ScriptedOutcome:
    if isinstance(details, Card):
        return _card_outcome(details, today)
    return _wallet_outcome(method, details)


def initial_result(script: ScriptedOutcome) -> ChargeResult:
    return _INITIAL_RESULTS[script]


def result_after_code(script: ScriptedOutcome, method: PaymentMethod, code: str) -> ChargeResult:
    """Return the result of entering `code` for a charge that asked for one."""
    if script is ScriptedOutcome.ASKS_FOR_CODE_AND_LACKS_FUNDS:
        return _INSUFFICIENT_FUNDS
    return (
        _PAID
        if code == RIGHT_CODES[method]
        else ChargeResult(ChargeStatus.NEEDS_CODE, DeclineReason.WRONG_CODE)
    )


def result_after_settlement(before: ChargeResult, outcome: ChargeStatus) -> ChargeResult:
    """Return the result of settling a charge as `outcome`. A paid charge stays paid."""
    if before.status is ChargeStatus.PAID or outcome is ChargeStatus.PAID:
        return _PAID
    return before if before.status is ChargeStatus.DECLINED else _DECLINED


def _card_outcome(card: Card, today: date) -> ScriptedOutcome:
    is_expired = (card.expiry_year, card.expiry_month) < (today.year, today.month)
    if is_expired or not is_card_number(card.number):
        return ScriptedOutcome.DECLINES
    return _CARDS.get(card.number, ScriptedOutcome.PAYS)


def _wallet_outcome(method: PaymentMethod, wallet: Wallet) -> ScriptedOutcome:
    if not (_PHONE.fullmatch(wallet.phone) and wallet.phone.startswith(WALLET_PREFIXES[method])):
        return ScriptedOutcome.WRONG_PHONE_OR_BIRTH_YEAR
    if wallet.phone.endswith("000"):
        return ScriptedOutcome.NOT_SUBSCRIBED
    if wallet.phone.endswith("995"):
        return ScriptedOutcome.ASKS_FOR_CODE_AND_LACKS_FUNDS
    is_known = method is PaymentMethod.SADAD and wallet.phone == _KNOWN_SADAD_WALLET.phone
    if is_known and wallet.birth_year != _KNOWN_SADAD_WALLET.birth_year:
        return ScriptedOutcome.WRONG_PHONE_OR_BIRTH_YEAR
    return ScriptedOutcome.ASKS_FOR_CODE
