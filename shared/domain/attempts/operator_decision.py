"""An operator decides what became of an attempt, as they know it from the provider; noted in the merchant's log too."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.attempts.notes import explanation_in, reference_in
from shared.domain.attempts.provider_exchange import Outcome, Settled
from shared.domain.attempts.settlement import (
    AttemptNotFoundError,
    LockedAttempt,
    lock_attempt,
    settle_decided,
)
from shared.domain.attempts.states import (
    AWAITING,
    CHARGED,
    SURELY_ARRIVED_AFTER,
    UNDER_WAY,
    Answer,
    AttemptState,
)
from shared.domain.audit_log import Action, Actor, Details, record
from shared.platform.database.first_value import first_value
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


class AttemptMovedError(RefusedError):
    """It is not as whoever decided saw it: the customer goes on. Nothing was changed."""

    def __init__(self, state: AttemptState) -> None:
        super().__init__(f"it has gone on meanwhile: it is {state}; look again before you decide")
        self.state = state


class StillOnItsWayError(RefusedError):
    """Nobody can know yet that nothing was charged."""

    def __init__(self) -> None:
        seconds = int(SURELY_ARRIVED_AFTER.total_seconds())
        super().__init__(f"the provider was asked less than {seconds} seconds ago; wait for its answer")


@dataclass(frozen=True, slots=True)
class Seen:
    """The attempt as it was shown to whoever decides."""

    state: AttemptState
    sendings: int

    def still_holds(self, found: LockedAttempt) -> bool:
        """That an answer has failed to come is no news to somebody who decides."""
        is_same_state = found.state is self.state or {found.state, self.state} <= UNDER_WAY
        return is_same_state and found.sendings == self.sendings


@dataclass(frozen=True, slots=True)
class Decision:
    is_paid: bool
    reason: str
    """How they know."""
    reference: str = ""
    """The provider's own name for the payment."""

    @property
    def answer(self) -> Answer:
        return Answer.PAID if self.is_paid else Answer.DECLINED


def can_decide(state: AttemptState, answer: Answer) -> bool:
    """Money that arrived counts whatever we thought; that none did is only worth saying where it is in doubt."""
    if state in CHARGED:
        return False
    return answer is Answer.PAID or state in UNDER_WAY | AWAITING


def decide(
    connection: Connection[Any], attempt: UUID, decision: Decision, actor: Actor, seen: Seen | None = None
) -> Settled:
    """With `seen` only as long as that is how it is. Raises a RefusedError where it cannot be decided so."""
    try:
        found = lock_attempt(connection, attempt)
    except AttemptNotFoundError:
        raise NoSuchAttemptError(attempt) from None
    if not can_decide(found.state, decision.answer):
        raise OutcomeKnownError(found.state)
    if seen is not None and not seen.still_holds(found):
        raise AttemptMovedError(found.state)
    if not decision.is_paid and _is_on_its_way(connection, found):
        raise StillOnItsWayError
    reason, reference = explanation_in(decision.reason), reference_in(decision.reference)
    settled = settle_decided(connection, attempt, Outcome(decision.answer, reason, reference))
    details: Details = {
        "attempt": str(attempt),
        "payment": str(found.intent),
        "outcome": settled.attempt,
        "reason": reason,
        "reference": reference,
    }
    application_id = first_value(connection.execute(_OWNER, (found.intent,)))
    record(connection, actor, Action.ATTEMPT_DECIDED, application_id=application_id, details=details)
    return settled


def _is_on_its_way(connection: Connection[Any], found: LockedAttempt) -> bool:
    """While we do not know what became of it, too: whoever was to ask may have stalled, and ask now."""
    if found.state not in UNDER_WAY:
        return False
    return bool(first_value(connection.execute(_ON_ITS_WAY, (SURELY_ARRIVED_AFTER, found.id))))
