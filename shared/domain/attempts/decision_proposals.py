"""Decisions that wait for a second operator: the list, approval and rejection. Only the monitor approves.

Everything is checked again at approval, with the attempt and the proposal locked.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from shared.domain.attempts.operator_decision import (
    ProposalEnd,
    add_entry,
    check_answer,
    check_attempt,
    end_proposal,
    lock_facts,
)
from shared.domain.attempts.provider_exchange import AttemptOutcome, SettlementResult
from shared.domain.attempts.settlement import settle_decision
from shared.domain.attempts.states import AttemptSnapshot, AttemptState, ProviderAnswer
from shared.domain.audit_log import Action, Actor
from shared.platform.database.stable_plans import read_in_index_order
from shared.platform.errors import RefusedError

IS_CURRENT_SQL = """t.provider_requests = p.provider_requests
  and (t.state = p.state or t.state in ('sent', 'unknown') and p.state in ('sent', 'unknown'))"""
"""Whether a proposal `p` is about the attempt `t` as it is now, like AttemptSnapshot.matches."""
# Few are open at any time. `offset 0` makes PostgreSQL look up attempts and intents one by one. A proposal about an
# attempt that has changed since is outdated, and nobody can approve it.
WAITING_SQL = f"""
with open as materialized (
    select * from decision_proposals where ended_as is null
      and (%(attempt)s::uuid is null or attempt_id = %(attempt)s)
)
select p.id, p.attempt_id as attempt, i.reference as payment, i.amount, i.currency, t.provider, p.outcome, p.reason,
       p.reference, p.proposed_by, p.proposer_id, p.proposed_at, i.application_id, a.name as application,
       m.name as merchant
from open as p
cross join lateral (select * from payment_attempts where id = p.attempt_id offset 0) as t
cross join lateral (select * from payment_intents where uuid = t.intent_uuid offset 0) as i
left join applications as a on a.id = i.application_id
left join merchants as m on m.id = a.merchant_id
where {IS_CURRENT_SQL}
order by p.id limit %(limit)s"""
_LOCK = """
select outcome, reason, reference, state, provider_requests, proposed_by, proposer_id, ended_as
from decision_proposals where id = %s and attempt_id = %s for update"""
_LOCK_OPERATOR = "select from operators where id = %s and removed_at is null for share"


class ProposalNotFoundError(RefusedError):
    def __init__(self) -> None:
        super().__init__("there is no such proposal")


class ProposalEndedError(RefusedError):
    """Somebody has approved or rejected it, or it is outdated. Nothing was changed."""

    def __init__(self, ended_as: ProposalEnd) -> None:
        super().__init__(f"the proposal is no longer open: it was {ended_as}")
        self.ended_as = ended_as


class OwnProposalError(RefusedError):
    """Another operator has to approve it. Nothing was changed."""

    def __init__(self) -> None:
        super().__init__("another operator has to approve what you proposed")


class NotAnOperatorError(RefusedError):
    """Only an operator with an account can approve or reject. Nothing was changed."""

    def __init__(self) -> None:
        super().__init__("only an operator who is signed in to the monitor can approve or reject a decision")


@dataclass(frozen=True, slots=True)
class WaitingDecision:
    id: UUID
    attempt: UUID
    payment: str
    """Reference of the intent, as on the customer's receipt."""
    amount: int
    currency: str
    provider: str
    outcome: str
    reason: str
    reference: str | None
    proposed_by: str
    proposer_id: UUID | None
    """None: the command line."""
    proposed_at: datetime
    application_id: UUID
    application: str | None
    merchant: str | None

    @property
    def is_paid(self) -> bool:
        return self.outcome == "paid"


@dataclass(frozen=True, slots=True)
class OutdatedProposal:
    """The attempt had changed since the proposal, which is therefore ended. The attempt was not changed."""

    state: AttemptState


@dataclass(frozen=True, slots=True)
class _LockedProposal:
    id: UUID
    outcome: AttemptOutcome
    snapshot: AttemptSnapshot
    proposed_by: str
    proposer_id: UUID | None

    @property
    def is_paid(self) -> bool:
        return self.outcome.answer is ProviderAnswer.PAID


def list_waiting(
    connection: Connection[Any], limit: int = 1000, attempt: UUID | None = None
) -> list[WaitingDecision]:
    """Return the decisions that wait for approval, oldest first; with `attempt`, the one about it."""
    read_in_index_order(connection)
    with connection.cursor(row_factory=class_row(WaitingDecision)) as cursor:
        return cursor.execute(WAITING_SQL, {"limit": limit, "attempt": attempt}).fetchall()


def approve_proposal(
    connection: Connection[Any], attempt: UUID, proposal: UUID, actor: Actor
) -> SettlementResult | OutdatedProposal:
    """Settle the attempt as proposed, and record it in the audit log; or end the proposal if the attempt has changed.

    Raises a RefusedError if it is not open, if `actor` proposed it or is no operator, or if it may not be decided so.
    """
    facts = lock_facts(connection, attempt)
    found = _lock_proposal(connection, attempt, proposal)
    _check_operator(connection, actor)
    if actor.operator_id == found.proposer_id or actor.name == found.proposed_by:
        raise OwnProposalError
    if not found.snapshot.matches(facts.locked.snapshot):
        end_proposal(connection, proposal, ProposalEnd.OUTDATED, actor)
        return OutdatedProposal(facts.locked.state)
    check_attempt(connection, facts.locked, found.snapshot, is_paid=found.is_paid)
    answer = check_answer(connection, facts, is_paid=found.is_paid)
    settled = settle_decision(connection, attempt, found.outcome)
    end_proposal(connection, proposal, ProposalEnd.APPROVED, actor)
    details = facts.audit_details(found.outcome, answer, proposed_by=found.proposed_by)
    add_entry(connection, actor, Action.DECISION_APPROVED, facts, {**details, "outcome": settled.attempt})
    return settled


def reject_proposal(connection: Connection[Any], attempt: UUID, proposal: UUID, actor: Actor) -> None:
    """End the proposal without changing the attempt, and record it in the audit log. Its proposer may do so too.

    Raises a RefusedError if it is not open or `actor` is no operator.
    """
    facts = lock_facts(connection, attempt)
    found = _lock_proposal(connection, attempt, proposal)
    _check_operator(connection, actor)
    end_proposal(connection, proposal, ProposalEnd.REJECTED, actor)
    details = facts.audit_details(found.outcome, None, proposed_by=found.proposed_by)
    add_entry(connection, actor, Action.DECISION_REJECTED, facts, details)


def _lock_proposal(connection: Connection[Any], attempt: UUID, proposal: UUID) -> _LockedProposal:
    """Lock an open proposal about `attempt`. Raises ProposalNotFoundError and ProposalEndedError."""
    row = connection.execute(_LOCK, (proposal, attempt)).fetchone()
    if row is None:
        raise ProposalNotFoundError
    answer, reason, reference, state, provider_requests, proposed_by, proposer_id, ended_as = row
    if ended_as is not None:
        raise ProposalEndedError(ProposalEnd(ended_as))
    return _LockedProposal(
        proposal,
        AttemptOutcome(ProviderAnswer(answer), reason, reference, is_from_operator=True),
        AttemptSnapshot(AttemptState(state), provider_requests),
        proposed_by,
        proposer_id,
    )


def _check_operator(connection: Connection[Any], actor: Actor) -> None:
    """Raise NotAnOperatorError unless `actor` has an account; the lock keeps it from being removed meanwhile."""
    if actor.operator_id is None or not connection.execute(_LOCK_OPERATOR, (actor.operator_id,)).rowcount:
        raise NotAnOperatorError
