"""What Plutu says of a payment when its customer comes back, or by itself: believed only as it was signed. Pure."""

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import urlencode
from uuid import UUID

from services.checkout.providers.interface import FailureReason
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.states import ProviderAnswer

_SIGNED = frozenset({"gateway", "approved", "canceled", "invoice_no", "amount", "transaction_id"})
_ALWAYS_THERE = ("gateway", "invoice_no", "amount", "hashed")
_YES_OR_NO = frozenset({"", "0", "1"})
_AMOUNT = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,3})?")
_INVOICE = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(?:0|[1-9][0-9]*)")
_MINOR_UNITS = 1000
_LONGEST_REFERENCE = 255


class UntrustedNotificationError(Exception):
    """Nothing of it is to be believed. The text repeats nothing of what was received."""


@dataclass(frozen=True, slots=True)
class PlutuNotification:
    attempt: UUID
    approved: bool
    canceled: bool
    """By the customer; where neither, the bank has declined."""
    amount: int
    """Minor units."""
    transaction_id: str | None
    """Always there where it was approved."""


def invoice_number(attempt: UUID, number: int) -> str:
    """Plutu takes each only once: `number` counts the requests of the attempt that may charge."""
    return f"{attempt}.{number}"


def attempt_in(invoice_no: str) -> UUID | None:
    """None where it is no invoice of ours."""
    found = _INVOICE.fullmatch(invoice_no)
    return UUID(found[1]) if found else None


def is_storable_reference(reference: str) -> bool:
    """As Plutu's name for a payment: text that a database takes and a person can read."""
    return bool(reference.strip()) and reference.isprintable() and len(reference) <= _LONGEST_REFERENCE


def read_notification(received: Sequence[tuple[str, str]], secret_keys: Sequence[str]) -> PlutuNotification:
    """`received` in the order received: it is part of what is signed, with one of these keys."""
    given = dict(received)
    if len(given) != len(received):
        raise UntrustedNotificationError("a parameter is there twice")
    for name in _ALWAYS_THERE:
        if not given.get(name):
            raise UntrustedNotificationError(f"{name} is missing")
    hashed = _bytes(given["hashed"])
    fits = [hmac.compare_digest(_signature(received, key), hashed) for key in secret_keys]
    if not any(fits):
        raise UntrustedNotificationError("it was not signed with this account's key, or changed afterwards")
    approved, transaction_id = _is_approved(given), _transaction_in(given)
    canceled = given.get("canceled") == "1"
    if approved and transaction_id is None:
        raise UntrustedNotificationError("it is approved without a transaction_id")
    amount = _minor_units(given["amount"])
    return PlutuNotification(_attempt(given), approved, canceled, amount, transaction_id)


def outcome_of(returned: PlutuNotification) -> AttemptOutcome:
    if returned.approved:
        return AttemptOutcome(ProviderAnswer.PAID, provider_reference=returned.transaction_id)
    return AttemptOutcome(
        ProviderAnswer.DECLINED,
        FailureReason.LEFT_BY_CUSTOMER if returned.canceled else FailureReason.DECLINED,
    )


def _signature(received: Sequence[tuple[str, str]], secret_key: str) -> bytes:
    if not secret_key:
        raise UntrustedNotificationError("there is no key to check it with")
    signed = [(name, _bytes(value)) for name, value in received if name in _SIGNED]
    digest = hmac.new(_bytes(secret_key), urlencode(signed).encode(), hashlib.sha256)
    return digest.hexdigest().upper().encode()


def _bytes(text: str) -> bytes:
    # Strangers send what they like: a lone surrogate too must end as a refusal.
    return text.encode(errors="surrogatepass")


def _is_approved(given: Mapping[str, str]) -> bool:
    approved, canceled = given.get("approved"), given.get("canceled")
    if approved is None and canceled is None:
        raise UntrustedNotificationError("it says neither approved nor canceled")
    if not {approved or "", canceled or ""} <= _YES_OR_NO:
        raise UntrustedNotificationError("approved or canceled is neither 0 nor 1")
    if approved == canceled == "1":
        raise UntrustedNotificationError("it says approved and canceled")
    return approved == "1"


def _transaction_in(given: Mapping[str, str]) -> str | None:
    found = given.get("transaction_id") or None
    if found and not is_storable_reference(found):
        raise UntrustedNotificationError("its transaction_id cannot be one")
    return found


def _attempt(given: Mapping[str, str]) -> UUID:
    attempt = attempt_in(given["invoice_no"])
    if attempt is None:
        raise UntrustedNotificationError("its invoice_no is none of ours")
    return attempt


def _minor_units(amount: str) -> int:
    if not _AMOUNT.fullmatch(amount):
        raise UntrustedNotificationError("its amount is no plain decimal with at most 3 decimals")
    return int(Decimal(amount) * _MINOR_UNITS)
