"""Operators decide the outcome of an attempt that they know from the provider. The merchant's audit log shows it.

What needs a second operator becomes a proposal (`decision_proposals`), which another operator approves or rejects.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.attempts.decision_rules import (
    OperatorDecision,
    RecordedAnswer,
    check_contradiction,
    check_decision,
    needs_approval,
)
from shared.domain.attempts.provider_exchange import AttemptOutcome, SettlementResult
from shared.domain.attempts.settlement import LockedAttempt, lock_attempt, settle_decision
from shared.domain.attempts.settlement_rules import is_past_in_flight_window
from shared.domain.attempts.states import AttemptSnapshot, AttemptState
from shared.domain.attempts.status_inquiries import can_be_asked, find_valid_answer
from shared.domain.audit_log import Action, Actor, AuditDetails, add_audit_entry
from shared.platform.database.pool import fetch_scalar
from shared.platform.errors import RefusedError

_SENT_AT = "select sent_at, mizan_now() from payment_attempts where id = %s"
_PAYMENT = "select application_id, amount from payment_intents where uuid = %s"
_OPEN = (
    "select id, state, provider_requests from decision_proposals where attempt_id = %s and ended_as is null"
)
_PROPOSE = """
insert into decision_proposals
    (attempt_id, outcome, reason, reference, state, provider_requests, proposed_by, proposer_id)
values (%s, %s, %s, %s, %s, %s, %s, %s) returning id"""
_END = """
update decision_proposals set ended_as = %s, ended_by = %s, ended_by_id = %s, ended_at = mizan_now()
where id = %s and ended_as is null"""


class ProposalEnd(StrEnum):
    APPROVED = "approved"
    REJECTED = "rejected"
    OUTDATED = "outdated"
    """The attempt had changed since it was proposed."""


class NotAskedError(RefusedError):
    """The provider can be asked, and there is no recent answer about the attempt as it is now. Nothing was changed."""

    def __init__(self) -> None:
        super().__init__("ask the provider first: there is no recent answer about the attempt as it is now")


class AlreadyProposedError(RefusedError):
    """A decision about the attempt waits for approval. Nothing was changed."""

    def __init__(self) -> None:
        super().__init__("a decision about this attempt waits for approval in the monitor")


@dataclass(frozen=True, slots=True)
class ProposedDecision:
    """The decision needs the approval of another operator. The attempt was not changed."""

    id: UUID


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """An attempt that is locked, and what a decision about it depends on."""

    locked: LockedAttempt
    application_id: UUID
    amount: int

    def audit_details(
        self, outcome: AttemptOutcome, answer: RecordedAnswer | None, **more: str
    ) -> AuditDetails:
        return {
            "attempt": str(self.locked.id),
            "payment": str(self.locked.intent),
            "outcome": outcome.answer,
            "reason": outcome.reason,
            "reference": outcome.provider_reference,
            **({} if answer is None else {"provider_answer": answer.value}),
            **more,
        }


def lock_facts(connection: Connection[Any], attempt: UUID) -> AttemptFacts:
    """Lock the attempt and its intent, and return what a decision depends on. Raises AttemptNotFoundError."""
    locked = lock_attempt(connection, attempt)
    payment = connection.execute(_PAYMENT, (locked.intent,)).fetchone()
    assert payment is not None
    return AttemptFacts(locked, *payment)


def check_attempt(
    connection: Connection[Any], found: LockedAttempt, snapshot: AttemptSnapshot, *, is_paid: bool
) -> None:
    """Raise a RefusedError if the attempt cannot be decided so now, or no longer matches `snapshot`."""
    check_decision(found.snapshot, snapshot, lambda: _is_in_flight(connection, found.id), is_paid=is_paid)


def check_answer(connection: Connection[Any], facts: AttemptFacts, *, is_paid: bool) -> RecordedAnswer | None:
    """Return the provider's recorded answer; None if it cannot be asked.

    Raises NotAskedError if there is no recent answer, and ContradictsProviderError if it rules the decision out.
    """
    if not can_be_asked(facts.locked.provider):
        return None
    found = find_valid_answer(connection, facts.locked.id, facts.locked.snapshot)
    if found is None or found.answer is None:
        raise NotAskedError
    check_contradiction(found.answer, is_paid=is_paid)
    return found.answer


def decide_attempt(
    connection: Connection[Any],
    attempt: UUID,
    decision: OperatorDecision,
    actor: Actor,
    *,
    snapshot: AttemptSnapshot,
    approval_above: int,
) -> SettlementResult | ProposedDecision:
    """Settle the attempt as decided, or propose it if another operator has to approve it. Recorded in the audit log.

    Only if the attempt still matches `snapshot`. Raises a RefusedError if it cannot be decided so.
    """
    facts = lock_facts(connection, attempt)
    check_attempt(connection, facts.locked, snapshot, is_paid=decision.is_paid)
    outcome = decision.outcome()
    answer = check_answer(connection, facts, is_paid=decision.is_paid)
    _end_outdated(connection, facts, actor)
    if needs_approval(facts.locked.state, facts.amount, approval_above, is_paid=decision.is_paid):
        return _propose(connection, facts, outcome, answer, actor)
    settled = settle_decision(connection, attempt, outcome)
    details = {**facts.audit_details(outcome, answer), "outcome": settled.attempt}
    add_entry(connection, actor, Action.ATTEMPT_DECIDED, facts, details)
    return settled


def end_proposal(connection: Connection[Any], proposal: UUID, ended_as: ProposalEnd, actor: Actor) -> None:
    """Close the proposal, in the transaction that acts on it."""
    connection.execute(_END, (ended_as, actor.name, actor.operator_id, proposal))


def add_entry(
    connection: Connection[Any], actor: Actor, action: Action, facts: AttemptFacts, details: AuditDetails
) -> None:
    add_audit_entry(connection, actor, action, application_id=facts.application_id, details=details)


def _propose(
    connection: Connection[Any],
    facts: AttemptFacts,
    outcome: AttemptOutcome,
    answer: RecordedAnswer | None,
    actor: Actor,
) -> ProposedDecision:
    snapshot = facts.locked.snapshot
    values = (
        facts.locked.id,
        outcome.answer,
        outcome.reason,
        outcome.provider_reference,
        snapshot.state,
        snapshot.provider_requests,
        actor.name,
        actor.operator_id,
    )
    proposal = UUID(str(fetch_scalar(connection, _PROPOSE, values)))
    add_entry(connection, actor, Action.DECISION_PROPOSED, facts, facts.audit_details(outcome, answer))
    return ProposedDecision(proposal)


def _end_outdated(connection: Connection[Any], facts: AttemptFacts, actor: Actor) -> None:
    """End a proposal about an earlier state of the attempt. Raises AlreadyProposedError if one still holds."""
    row = connection.execute(_OPEN, (facts.locked.id,)).fetchone()
    if row is None:
        return
    if AttemptSnapshot(AttemptState(row[1]), row[2]).matches(facts.locked.snapshot):
        raise AlreadyProposedError
    end_proposal(connection, row[0], ProposalEnd.OUTDATED, actor)


def _is_in_flight(connection: Connection[Any], attempt: UUID) -> bool:
    """Return whether the last request may still reach the provider."""
    row = connection.execute(_SENT_AT, (attempt,)).fetchone()
    assert row is not None
    sent_at, now = row
    return sent_at is not None and not is_past_in_flight_window(sent_at, now)
