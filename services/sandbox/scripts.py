"""What the bank and the wallets do with a card, a phone or a code. Pure; today is given."""

import re
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from shared.domain.payment_methods import PaymentMethod, is_card_number


class Status(StrEnum):
    PAID = "paid"
    DECLINED = "declined"
    NEEDS_CODE = "needs_code"


class Reason(StrEnum):
    DECLINED = "declined"
    INSUFFICIENT_FUNDS = "insufficient_funds"
    NOT_SUBSCRIBED = "not_subscribed"
    WRONG_CODE = "wrong_code"
    WRONG_PHONE_OR_BIRTH_YEAR = "wrong_phone_or_birth_year"


class Script(StrEnum):
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
class Standing:
    """How things are with a charge."""

    status: Status
    reason: Reason | None = None


SILENT = frozenset({Script.PAYS_IN_SILENCE, Script.DECLINES_IN_SILENCE})
"""What these write down is not told for a while."""

_PAID = Standing(Status.PAID)
_DECLINED = Standing(Status.DECLINED, Reason.DECLINED)
_INSUFFICIENT_FUNDS = Standing(Status.DECLINED, Reason.INSUFFICIENT_FUNDS)
_NEEDS_CODE = Standing(Status.NEEDS_CODE)

_BEGINNINGS = {
    Script.PAYS: _PAID,
    Script.DECLINES: _DECLINED,
    Script.LACKS_FUNDS: _INSUFFICIENT_FUNDS,
    Script.PAYS_IN_SILENCE: _PAID,
    Script.DECLINES_IN_SILENCE: _DECLINED,
    Script.ASKS_FOR_CODE: _NEEDS_CODE,
    Script.ASKS_FOR_CODE_AND_LACKS_FUNDS: _NEEDS_CODE,
    Script.NOT_SUBSCRIBED: Standing(Status.DECLINED, Reason.NOT_SUBSCRIBED),
    Script.WRONG_PHONE_OR_BIRTH_YEAR: Standing(Status.DECLINED, Reason.WRONG_PHONE_OR_BIRTH_YEAR),
}
_CARDS = {
    "4000000000000002": Script.DECLINES,
    "4000000000009995": Script.LACKS_FUNDS,
    "6395043835180860": Script.ASKS_FOR_CODE,
    "4000000000000077": Script.PAYS_IN_SILENCE,
    "4000000000000341": Script.DECLINES_IN_SILENCE,
    "4000000000000259": Script.DECLINES,
}
_PHONES = {
    PaymentMethod.SADAD: re.compile(r"09[13][0-9]{7}"),
    PaymentMethod.ADFALI: re.compile(r"09[1-6][0-9]{7}"),
}
_SADAD_SUBSCRIBER = Wallet("0913632323", 1999)
"""The one whose birth year is known, and has to be right."""
_RIGHT_CODES = {PaymentMethod.CARD: "111111", PaymentMethod.SADAD: "111111", PaymentMethod.ADFALI: "1111"}


def script_of(method: PaymentMethod, details: Card | Wallet, today: date) -> Script:
    if isinstance(details, Card):
        return _script_of_card(details, today)
    return _script_of_wallet(method, details)


def beginning(script: Script) -> Standing:
    return _BEGINNINGS[script]


def after_code(script: Script, method: PaymentMethod, code: str) -> Standing:
    """Where a charge stands that asked for a code and was given this one."""
    if script is Script.ASKS_FOR_CODE_AND_LACKS_FUNDS:
        return _INSUFFICIENT_FUNDS
    return _PAID if code == _RIGHT_CODES[method] else Standing(Status.NEEDS_CODE, Reason.WRONG_CODE)


def after_settling(before: Standing, outcome: Status) -> Standing:
    """Whatever it was before, except that paid stays paid."""
    if before.status is Status.PAID or outcome is Status.PAID:
        return _PAID
    return before if before.status is Status.DECLINED else _DECLINED


def _script_of_card(card: Card, today: date) -> Script:
    is_expired = (card.expiry_year, card.expiry_month) < (today.year, today.month)
    if is_expired or not is_card_number(card.number):
        return Script.DECLINES
    return _CARDS.get(card.number, Script.PAYS)


def _script_of_wallet(method: PaymentMethod, wallet: Wallet) -> Script:
    if not _PHONES[method].fullmatch(wallet.phone):
        return Script.WRONG_PHONE_OR_BIRTH_YEAR
    if wallet.phone.endswith("000"):
        return Script.NOT_SUBSCRIBED
    if wallet.phone.endswith("995"):
        return Script.ASKS_FOR_CODE_AND_LACKS_FUNDS
    is_known = method is PaymentMethod.SADAD and wallet.phone == _SADAD_SUBSCRIBER.phone
    if is_known and wallet.birth_year != _SADAD_SUBSCRIBER.birth_year:
        return Script.WRONG_PHONE_OR_BIRTH_YEAR
    return Script.ASKS_FOR_CODE
