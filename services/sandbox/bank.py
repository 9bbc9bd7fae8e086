"""What can be done with charges. Each is one transaction, so what comes twice at the same moment happens once."""

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
    """The attempt has a charge already, and what is asked now is not that."""


class Bank:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def charge(self, asked: ChargeRequest) -> tuple[Charge, bool]:
        """The attempt's charge, and whether it is new. A repeat finds it as it stands."""
        with self._ledger.transaction() as books:
            known = books.find_charge_of_attempt(str(asked.attempt))
            if known is None:
                made = _new_charge(asked)
                books.add_charge(made)
                return made, True
        if (known.amount, known.intent, known.method) != (asked.amount, str(asked.intent), asked.method):
            raise ConflictingChargeError("The attempt was made before with another amount, intent or method.")
        return known, False

    def confirm(self, charge_id: str, given: CodeSubmission) -> Charge:
        """A number that was judged before is answered as it was then, whatever has come since."""
        with self._ledger.transaction() as books:
            charge = _existing(books, charge_id)
            judged = books.find_judged_code(charge_id, given.number)
            if judged:
                return _at(charge, *judged)
            if charge.status is not ChargeStatus.NEEDS_CODE:
                return charge
            standing, at = result_after_code(charge.script, charge.method, given.code), current_timestamp()
            books.add_judged_code(charge_id, given.number, standing, at)
            books.move_charge(charge_id, standing, at)
        return _at(charge, standing, at)

    def settle(self, charge_id: str, outcome: ChargeStatus) -> tuple[Charge, ChargeNotification]:
        """The charge, and the word of it that is now to be sent."""
        with self._ledger.transaction() as books:
            charge, at = _existing(books, charge_id), current_timestamp()
            standing = result_after_settlement(charge.standing, outcome)
            if standing != charge.standing:
                books.move_charge(charge_id, standing, at)
                charge = _at(charge, standing, at)
            notification = ChargeNotification.of(charge, at)
            books.add_notification(notification)
        return charge, notification

    def find(self, charge_id: str) -> Charge:
        with self._ledger.transaction() as books:
            return _existing(books, charge_id)

    def find_of_attempt(self, attempt: str) -> list[Charge]:
        with self._ledger.transaction() as books:
            found = books.find_charge_of_attempt(attempt)
        return [found] if found else []

    def find_of_intent(self, intent: str) -> list[Charge]:
        with self._ledger.transaction() as books:
            return books.find_charges_of_intent(intent)

    def list_after(self, attempt: str) -> list[Charge]:
        """A page of all there are, in the order of their attempts."""
        with self._ledger.transaction() as books:
            return books.find_charges_after(attempt, PAGE_SIZE)


def _new_charge(asked: ChargeRequest) -> Charge:
    script = scripted_outcome(asked.method, asked.details, datetime.now(UTC).date())
    standing, at = initial_result(script), current_timestamp()
    return Charge(
        id=f"ch_{secrets.token_hex(12)}",
        attempt=str(asked.attempt),
        intent=str(asked.intent),
        method=asked.method,
        amount=asked.amount,
        currency=asked.currency,
        notify_url=asked.notify_url,
        script=script,
        status=standing.status,
        reason=standing.reason,
        created_at=at,
        updated_at=at,
    )


def _existing(books: LedgerTransaction, charge_id: str) -> Charge:
    found = books.find_charge(charge_id)
    if found is None:
        raise ChargeNotFoundError("There is no such charge.")
    return found


def _at(charge: Charge, standing: ChargeResult, at: str) -> Charge:
    return replace(charge, status=standing.status, reason=standing.reason, updated_at=at)
