"""Operators decide the outcome of an attempt that they know from the provider. The merchant's audit log shows it."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.attempts.notes import clean_note, clean_reference
from shared.domain.attempts.provider_exchange import AttemptOutcome, SettlementResult
from shared.domain.attempts.settlement import (
    LockedAttempt,
    lock_attempt,
    settle_decision,
)
from shared.domain.attempts.states import (
    AWAITING_CUSTOMER,
    CHARGED,
    IN_FLIGHT,
    IN_FLIGHT_WINDOW,
    AttemptState,
    ProviderAnswer,
)
from shared.domain.audit_log import Action, Actor, AuditDetails, add_audit_entry
from shared.platform.database.pool import fetch_scalar
from shared.platform.errors import RefusedError

_IS_IN_FLIGHT = "select sent_at + %s > mizan_now() from payment_attempts where id = %s"
_OWNER = "select application_id from payment_intents where uuid = %s"


class OutcomeKnownError(RefusedError):
    """The attempt already has an outcome. Nothing was changed."""

    def __init__(self, state: AttemptState) -> None:
        super().__init__(f"the outcome is already known: {state}")
        self.state = state


class AttemptChangedError(RefusedError):
    """The attempt changed since it was shown to the operator. Nothing was changed."""

    def __init__(self, state: AttemptState) -> None:
        super().__init__(f"the attempt has changed and is now {state}; reload it before you decide")
        self.state = state


class StillInFlightError(RefusedError):
    """The request may still reach the provider, so the attempt cannot be declined yet. Nothing was changed."""

    def __init__(self) -> None:
        seconds = int(IN_FLIGHT_WINDOW.total_seconds())
        super().__init__(
            f"the request was sent less than {seconds} seconds ago; wait for the provider's answer"
        )


@dataclass(frozen=True, slots=True)
class AttemptSnapshot:
    """The attempt as it was shown to the operator."""

    state: AttemptState
    provider_requests: int

    def matches(self, found: LockedAttempt) -> bool:
        """Return whether the attempt is still as shown. A change from sent to unknown does not count."""
        is_same_state = found.state is self.state or {found.state, self.state} <= IN_FLIGHT
        return is_same_state and found.provider_requests == self.provider_requests


@dataclass(frozen=True, slots=True)
class OperatorDecision:
    is_paid: bool
    reason: str
    """How the operator knows."""
    reference: str = ""
    """The provider's reference of the payment, or an empty string."""

    @property
    def answer(self) -> ProviderAnswer:
        return ProviderAnswer.PAID if self.is_paid else ProviderAnswer.DECLINED


def can_decide(state: AttemptState, answer: ProviderAnswer) -> bool:
    """Return whether an operator may decide so: paid unless charged already, declined only if the outcome is open."""
    if state in CHARGED:
        return False
    return answer is ProviderAnswer.PAID or state in IN_FLIGHT | AWAITING_CUSTOMER


def apply_decision(
    connection: Connection[Any],
    attempt: UUID,
    decision: OperatorDecision,
    actor: Actor,
    snapshot: AttemptSnapshot | None = None,
) -> SettlementResult:
    """Settle the attempt as decided and record it in the audit log.

    With `snapshot`, only if the attempt still matches it. Raises a RefusedError if it cannot be decided so.
    """
    found = lock_attempt(connection, attempt)
    if not can_decide(found.state, decision.answer):
        raise OutcomeKnownError(found.state)
    if snapshot is not None and not snapshot.matches(found):
        raise AttemptChangedError(found.state)
    if not decision.is_paid and _is_in_flight(connection, found):
        raise StillInFlightError
    reason, reference = clean_note(decision.reason), clean_reference(decision.reference)
    outcome = AttemptOutcome(decision.answer, reason, reference, is_from_operator=True)
    settled = settle_decision(connection, attempt, outcome)
    details: AuditDetails = {
        "attempt": str(attempt),
        "payment": str(found.intent),
        "outcome": settled.attempt,
        "reason": reason,
        "reference": reference,
    }
    application_id = fetch_scalar(connection, _OWNER, (found.intent,))
    add_audit_entry(connection, actor, Action.ATTEMPT_DECIDED, application_id=application_id, details=details)
    return settled


def _is_in_flight(connection: Connection[Any], found: LockedAttempt) -> bool:
    """Return whether the request may still reach the provider, which holds for an unknown outcome too."""
    if found.state not in IN_FLIGHT:
        return False
    return bool(fetch_scalar(connection, _IS_IN_FLIGHT, (IN_FLIGHT_WINDOW, found.id)))
