"""Signed notifications of Plutu: the customer's return and callbacks. Verifies and parses them. Pure."""

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import urlencode
from uuid import UUID

from services.checkout.providers.interface import (
    FailureReason,
    UntrustedNotificationError,
    is_storable_reference,
)
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.states import ProviderAnswer

_SIGNED = frozenset({"gateway", "approved", "canceled", "invoice_no", "amount", "transaction_id"})
_REQUIRED = ("gateway", "invoice_no", "amount", "hashed")
_FLAG_VALUES = frozenset({"", "0", "1"})
_AMOUNT = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,3})?")
_INVOICE = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(?:0|[1-9][0-9]*)")
_MINOR_UNITS = 1000


@dataclass(frozen=True, slots=True)
class PlutuNotification:
    attempt: UUID
    approved: bool
    canceled: bool
    """Canceled by the customer. If neither approved nor canceled, the bank declined."""
    amount: int
    """Minor units."""
    transaction_id: str | None
    """Always present if approved."""


def invoice_number(attempt: UUID, number: int) -> str:
    """Return an invoice number, which Plutu accepts only once. `number` counts the requests that may charge."""
    return f"{attempt}.{number}"


def attempt_in(invoice_no: str) -> UUID | None:
    """Return the attempt of an invoice number, or None if it is not one of ours."""
    found = _INVOICE.fullmatch(invoice_no)
    return UUID(found[1]) if found else None


def read_notification(parameters: Sequence[tuple[str, str]], secret_keys: Sequence[str]) -> PlutuNotification:
    """Verify the signature and parse the parameters. Raises UntrustedNotificationError.

    `parameters` must be in the order received, because the signature covers the order. Any of `secret_keys` may sign.
    """
    by_name = dict(parameters)
    if len(by_name) != len(parameters):
        raise UntrustedNotificationError("a parameter appears twice")
    for name in _REQUIRED:
        if not by_name.get(name):
            raise UntrustedNotificationError(f"{name} is missing")
    hashed = _bytes(by_name["hashed"])
    matches = [hmac.compare_digest(_signature(parameters, key), hashed) for key in secret_keys]
    if not any(matches):
        raise UntrustedNotificationError("the signature does not match the account's key")
    approved, transaction_id = _is_approved(by_name), _transaction_id(by_name)
    canceled = by_name.get("canceled") == "1"
    if approved and transaction_id is None:
        raise UntrustedNotificationError("approved without a transaction_id")
    amount = _minor_units(by_name["amount"])
    return PlutuNotification(_attempt(by_name), approved, canceled, amount, transaction_id)


def outcome_of(notification: PlutuNotification) -> AttemptOutcome:
    if notification.approved:
        return AttemptOutcome(ProviderAnswer.PAID, provider_reference=notification.transaction_id)
    return AttemptOutcome(
        ProviderAnswer.DECLINED,
        FailureReason.LEFT_BY_CUSTOMER if notification.canceled else FailureReason.DECLINED,
    )


def _signature(parameters: Sequence[tuple[str, str]], secret_key: str) -> bytes:
    if not secret_key:
        raise UntrustedNotificationError("there is no key to verify the signature")
    signed = [(name, _bytes(value)) for name, value in parameters if name in _SIGNED]
    digest = hmac.new(_bytes(secret_key), urlencode(signed).encode(), hashlib.sha256)
    return digest.hexdigest().upper().encode()


def _bytes(text: str) -> bytes:
    # Anybody can send requests here: a lone surrogate must be refused, not raise UnicodeEncodeError.
    return text.encode(errors="surrogatepass")


def _is_approved(by_name: Mapping[str, str]) -> bool:
    approved, canceled = by_name.get("approved"), by_name.get("canceled")
    if approved is None and canceled is None:
        raise UntrustedNotificationError("approved and canceled are both missing")
    if not {approved or "", canceled or ""} <= _FLAG_VALUES:
        raise UntrustedNotificationError("approved or canceled is neither 0 nor 1")
    if approved == canceled == "1":
        raise UntrustedNotificationError("approved and canceled are both 1")
    return approved == "1"


def _transaction_id(by_name: Mapping[str, str]) -> str | None:
    found = by_name.get("transaction_id") or None
    if found and not is_storable_reference(found):
        raise UntrustedNotificationError("the transaction_id is not valid")
    return found


def _attempt(by_name: Mapping[str, str]) -> UUID:
    attempt = attempt_in(by_name["invoice_no"])
    if attempt is None:
        raise UntrustedNotificationError("the invoice_no is not one of ours")
    return attempt


def _minor_units(amount: str) -> int:
    if not _AMOUNT.fullmatch(amount):
        raise UntrustedNotificationError("the amount is not a decimal with at most 3 decimal places")
    return int(Decimal(amount) * _MINOR_UNITS)
