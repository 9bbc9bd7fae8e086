"""An operator decides what became of an attempt, as they know it from the provider; noted in the merchant's log too."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.attempts.notes import clean_note, clean_reference
from shared.domain.attempts.provider_exchange import AttemptOutcome, SettlementResult
from shared.domain.attempts.settlement import (
    AttemptNotFoundError,
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

_ON_ITS_WAY = "select sent_at + %s > mizan_now() from payment_attempts where id = %s"
_OWNER = "select application_id from payment_intents where uuid = %s"


class NoSuchAttemptError(RefusedError):
    def __init__(self, attempt: UUID) -> None:
        super().__init__(f"there is no attempt {attempt}")


class OutcomeKnownError(RefusedError):
    """Somebody was faster, or there never was a doubt. Nothing was changed."""

    def __init__(self, state: AttemptState) -> None:
        super().__init__(f"its outcome is known already: it is {state}")
        self.state = state


class AttemptChangedError(RefusedError):
    """It is not as whoever decided saw it: the customer goes on. Nothing was changed."""

    def __init__(self, state: AttemptState) -> None:
        super().__init__(f"it has gone on meanwhile: it is {state}; look again before you decide")
        self.state = state


class StillInFlightError(RefusedError):
    """Nobody can know yet that nothing was charged."""

    def __init__(self) -> None:
        seconds = int(IN_FLIGHT_WINDOW.total_seconds())
        super().__init__(f"the provider was asked less than {seconds} seconds ago; wait for its answer")


@dataclass(frozen=True, slots=True)
class AttemptSnapshot:
    """The attempt as it was shown to whoever decides."""

    state: AttemptState
    provider_requests: int

    def matches(self, found: LockedAttempt) -> bool:
        """That an answer has failed to come is no news to somebody who decides."""
        is_same_state = found.state is self.state or {found.state, self.state} <= IN_FLIGHT
        return is_same_state and found.provider_requests == self.provider_requests


@dataclass(frozen=True, slots=True)
class OperatorDecision:
    is_paid: bool
    reason: str
    """How they know."""
    reference: str = ""
    """The provider's own name for the payment."""

    @property
    def answer(self) -> ProviderAnswer:
        return ProviderAnswer.PAID if self.is_paid else ProviderAnswer.DECLINED


def can_decide(state: AttemptState, answer: ProviderAnswer) -> bool:
    """Money that arrived counts whatever we thought; that none did is only worth saying where it is in doubt."""
    if state in CHARGED:
        return False
    return answer is ProviderAnswer.PAID or state in IN_FLIGHT | AWAITING_CUSTOMER


def apply_decision(
    connection: Connection[Any],
    attempt: UUID,
    decision: OperatorDecision,
    actor: Actor,
    seen: AttemptSnapshot | None = None,
) -> SettlementResult:
    """With `seen` only as long as that is how it is. Raises a RefusedError where it cannot be decided so."""
    try:
        found = lock_attempt(connection, attempt)
    except AttemptNotFoundError:
        raise NoSuchAttemptError(attempt) from None
    if not can_decide(found.state, decision.answer):
        raise OutcomeKnownError(found.state)
    if seen is not None and not seen.matches(found):
        raise AttemptChangedError(found.state)
    if not decision.is_paid and _is_on_its_way(connection, found):
        raise StillInFlightError
    reason, reference = clean_note(decision.reason), clean_reference(decision.reference)
    settled = settle_decision(connection, attempt, AttemptOutcome(decision.answer, reason, reference))
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


def _is_on_its_way(connection: Connection[Any], found: LockedAttempt) -> bool:
    """While we do not know what became of it, too: whoever was to ask may have stalled, and ask now."""
    if found.state not in IN_FLIGHT:
        return False
    return bool(fetch_scalar(connection, _ON_ITS_WAY, (IN_FLIGHT_WINDOW, found.id)))
