"""What Plutu says of a payment when its customer comes back, or by itself: believed only as it was signed. Pure."""

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import urlencode
from uuid import UUID

from services.checkout.providers.port import Reason
from shared.domain.attempts.provider_exchange import Outcome
from shared.domain.attempts.states import Answer

_SIGNED = frozenset({"gateway", "approved", "canceled", "invoice_no", "amount", "transaction_id"})
_ALWAYS_THERE = ("gateway", "invoice_no", "amount", "hashed")
_YES_OR_NO = frozenset({"", "0", "1"})
_AMOUNT = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,3})?")
_INVOICE = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(?:0|[1-9][0-9]*)")
_MINOR_UNITS = 1000
_LONGEST_REFERENCE = 255


class ReturnRefusedError(Exception):
    """Nothing of it is to be believed. The text repeats nothing of what was received."""


@dataclass(frozen=True, slots=True)
class PlutuReturn:
    attempt: UUID
    approved: bool
    canceled: bool
    """By the customer; where neither, the bank has declined."""
    amount: int
    """Minor units."""
    transaction_id: str | None
    """Always there where it was approved."""


def invoice_of(attempt: UUID, number: int) -> str:
    """Plutu takes each only once: `number` counts the requests of the attempt that may charge."""
    return f"{attempt}.{number}"


def attempt_in(invoice_no: str) -> UUID | None:
    """None where it is no invoice of ours."""
    found = _INVOICE.fullmatch(invoice_no)
    return UUID(found[1]) if found else None


def can_be_kept(reference: str) -> bool:
    """As Plutu's name for a payment: text that a database takes and a person can read."""
    return bool(reference.strip()) and reference.isprintable() and len(reference) <= _LONGEST_REFERENCE


def read_return(received: Sequence[tuple[str, str]], secret_keys: Sequence[str]) -> PlutuReturn:
    """`received` in the order received: it is part of what is signed, with one of these keys."""
    given = dict(received)
    if len(given) != len(received):
        raise ReturnRefusedError("a parameter is there twice")
    for name in _ALWAYS_THERE:
        if not given.get(name):
            raise ReturnRefusedError(f"{name} is missing")
    hashed = _bytes(given["hashed"])
    fits = [hmac.compare_digest(_signature(received, key), hashed) for key in secret_keys]
    if not any(fits):
        raise ReturnRefusedError("it was not signed with this account's key, or changed afterwards")
    approved, transaction_id = _is_approved(given), _transaction_in(given)
    canceled = given.get("canceled") == "1"
    if approved and transaction_id is None:
        raise ReturnRefusedError("it is approved without a transaction_id")
    amount = _minor_units(given["amount"])
    return PlutuReturn(_attempt(given), approved, canceled, amount, transaction_id)


def outcome_of(returned: PlutuReturn) -> Outcome:
    if returned.approved:
        return Outcome(Answer.PAID, provider_reference=returned.transaction_id)
    return Outcome(Answer.DECLINED, Reason.LEFT_BY_CUSTOMER if returned.canceled else Reason.DECLINED)


def _signature(received: Sequence[tuple[str, str]], secret_key: str) -> bytes:
    if not secret_key:
        raise ReturnRefusedError("there is no key to check it with")
    signed = [(name, _bytes(value)) for name, value in received if name in _SIGNED]
    digest = hmac.new(_bytes(secret_key), urlencode(signed).encode(), hashlib.sha256)
    return digest.hexdigest().upper().encode()


def _bytes(text: str) -> bytes:
    # Strangers send what they like: a lone surrogate too must end as a refusal.
    return text.encode(errors="surrogatepass")


def _is_approved(given: Mapping[str, str]) -> bool:
    approved, canceled = given.get("approved"), given.get("canceled")
    if approved is None and canceled is None:
        raise ReturnRefusedError("it says neither approved nor canceled")
    if not {approved or "", canceled or ""} <= _YES_OR_NO:
        raise ReturnRefusedError("approved or canceled is neither 0 nor 1")
    if approved == canceled == "1":
        raise ReturnRefusedError("it says approved and canceled")
    return approved == "1"


def _transaction_in(given: Mapping[str, str]) -> str | None:
    found = given.get("transaction_id") or None
    if found and not can_be_kept(found):
        raise ReturnRefusedError("its transaction_id cannot be one")
    return found


def _attempt(given: Mapping[str, str]) -> UUID:
    attempt = attempt_in(given["invoice_no"])
    if attempt is None:
        raise ReturnRefusedError("its invoice_no is none of ours")
    return attempt


def _minor_units(amount: str) -> int:
    if not _AMOUNT.fullmatch(amount):
        raise ReturnRefusedError("its amount is no plain decimal with at most 3 decimals")
    return int(Decimal(amount) * _MINOR_UNITS)
