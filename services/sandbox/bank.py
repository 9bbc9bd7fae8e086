"""Operations on charges. Each is one transaction, so that two equal requests at the same moment act once."""

import secrets
from dataclasses import replace
from datetime import UTC, datetime

from services.sandbox.charges import Charge, ChargeNotification, current_timestamp
from services.sandbox.ledger import Ledger, LedgerTransaction
from services.sandbox.request_schemas import ChargeRequest, CodeSubmission
from services.sandbox.scripted_outcomes import (
    ChargeResult,
    ChargeStatus,
    initial_result,
    result_after_code,
    result_after_settlement,
    scripted_outcome,
)

PAGE_SIZE = 1000


class ChargeNotFoundError(Exception):
    """There is no charge with this id."""


class ConflictingChargeError(Exception):
    """The attempt already has a charge with another amount, intent or method."""


class Bank:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def charge(self, request: ChargeRequest) -> tuple[Charge, bool]:
        """Return the charge of the attempt, and whether it is new. A repeat returns the existing charge.

        Raises ConflictingChargeError if a repeat has another amount, intent or method.
        """
        with self._ledger.transaction() as transaction:
            existing = transaction.find_charge_of_attempt(str(request.attempt))
            if existing is None:
                charge = _new_charge(request)
                transaction.add_charge(charge)
                return charge, True
        if (existing.amount, existing.intent, existing.method) != (
            request.amount,
            str(request.intent),
            request.method,
        ):
            raise ConflictingChargeError(
                "The attempt already has a charge with another amount, intent or method."
            )
        return existing, False

    def confirm(self, charge_id: str, submission: CodeSubmission) -> Charge:
        """Check a code and return the charge. A repeated number returns its first result.

        Raises ChargeNotFoundError.
        """
        with self._ledger.transaction() as transaction:
            charge = _find_charge(transaction, charge_id)
            earlier = transaction.find_judged_code(charge_id, submission.number)
            if earlier:
                return _with_result(charge, *earlier)
            if charge.status is not ChargeStatus.NEEDS_CODE:
                return charge
            result, at = result_after_code(charge.script, charge.method, submission.code), current_timestamp()
            transaction.add_judged_code(charge_id, submission.number, result, at)
            transaction.update_charge(charge_id, result, at)
        return _with_result(charge, result, at)

    def settle(self, charge_id: str, outcome: ChargeStatus) -> tuple[Charge, ChargeNotification]:
        """Settle the charge. Return it and the notification to send. Raises ChargeNotFoundError."""
        with self._ledger.transaction() as transaction:
            charge, at = _find_charge(transaction, charge_id), current_timestamp()
            result = result_after_settlement(charge.result, outcome)
            if result != charge.result:
                transaction.update_charge(charge_id, result, at)
                charge = _with_result(charge, result, at)
            notification = ChargeNotification.of(charge, at)
            transaction.add_notification(notification)
        return charge, notification

    def find(self, charge_id: str) -> Charge:
        with self._ledger.transaction() as transaction:
            return _find_charge(transaction, charge_id)

    def find_of_attempt(self, attempt: str) -> list[Charge]:
        with self._ledger.transaction() as transaction:
            found = transaction.find_charge_of_attempt(attempt)
        return [found] if found else []

    def find_of_intent(self, intent: str) -> list[Charge]:
        with self._ledger.transaction() as transaction:
            return transaction.find_charges_of_intent(intent)

    def list_after(self, attempt: str) -> list[Charge]:
        """Return the next page of all charges, ordered by attempt."""
        with self._ledger.transaction() as transaction:
            return transaction.find_charges_after(attempt, PAGE_SIZE)


def _new_charge(request: ChargeRequest) -> Charge:
    script = scripted_outcome(request.method, request.details, datetime.now(UTC).date())
    result, at = initial_result(script), current_timestamp()
    return Charge(
        id=f"ch_{secrets.token_hex(12)}",
        attempt=str(request.attempt),
        intent=str(request.intent),
        method=request.method,
        amount=request.amount,
        currency=request.currency,
        notify_url=request.notify_url,
        script=script,
        status=result.status,
        reason=result.reason,
        created_at=at,
        updated_at=at,
    )


def _find_charge(transaction: LedgerTransaction, charge_id: str) -> Charge:
    found = transaction.find_charge(charge_id)
    if found is None:
        raise ChargeNotFoundError("There is no such charge.")
    return found


def _with_result(charge: Charge, result: ChargeResult, at: str) -> Charge:
    return replace(charge, status=result.status, reason=result.reason, updated_at=at)
