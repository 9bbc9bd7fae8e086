"""Settles attempts: applies what a provider or an operator reports to the attempt and its intent.

The intent is locked first, so that changes to the attempts of one intent happen one after the other.
"""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor

from shared.domain.attempts.provider_exchange import (
    AttemptOutcome,
    ProviderRequest,
    SettlementResult,
    StatusInquiry,
)
from shared.domain.attempts.settlement_rules import (
    answer_in_notification,
    answer_in_response,
    answer_to_inquiry,
    change_after,
    is_past_in_flight_window,
    keeps_inquiries,
    needs_inquiry,
)
from shared.domain.attempts.states import (
    CHARGED,
    AttemptSnapshot,
    AttemptState,
    ProviderAnswer,
    abandon_if_unpayable,
)
from shared.domain.intents import store as intents
from shared.domain.intents.states import IntentStatus
from shared.platform.database.pool import fetch_scalar
from shared.platform.errors import RefusedError

_FIND_INTENT = "select intent_uuid from payment_attempts where id = %s"
_FIND = """
select state, provider_requests, provider, provider_reference is not null and not reference_from_operator
from payment_attempts where id = %s"""
_MAKE_INQUIRY = "select provider_requests, sent_at, mizan_now() from payment_attempts where id = %s"


class AttemptNotFoundError(RefusedError):
    def __init__(self, attempt: UUID) -> None:
        super().__init__(f"there is no attempt {attempt}")


@dataclass(frozen=True, slots=True)
class LockedAttempt:
    """An attempt that is locked, together with its intent, until the transaction ends."""

    id: UUID
    state: AttemptState
    provider_requests: int
    """How many requests that may charge there were."""
    provider: str
    intent: UUID
    intent_status: IntentStatus
    has_provider_reference: bool
    """Whether the provider supplied a reference."""

    @property
    def snapshot(self) -> AttemptSnapshot:
        return AttemptSnapshot(self.state, self.provider_requests)


def lock_attempt(connection: Connection[Any], attempt: UUID) -> LockedAttempt:
    row = connection.execute(_FIND_INTENT, (attempt,)).fetchone()
    if row is None:
        raise AttemptNotFoundError(attempt)
    intent = UUID(str(row[0]))
    status = intents.lock_intent(connection, intent)
    found = connection.execute(_FIND, (attempt,)).fetchone()
    assert found is not None
    return LockedAttempt(attempt, AttemptState(found[0]), found[1], found[2], intent, status, found[3])


# If the outcome has just become unknown, the provider is asked at once. Otherwise the schedule stays, or ends.
_SETTLE = """
update payment_attempts
set state = %(state)s, reason = %(reason)s, updated_at = mizan_now(),
    provider_reference = case when %(keeps_reference)s then provider_reference else %(provider_reference)s end,
    reference_from_operator = case when %(keeps_reference)s then reference_from_operator else %(is_from_operator)s end,
    next_verify_at = case when %(needs_inquiry)s and (next_verify_at is null or verifications = 0) then mizan_now()
                          when %(needs_inquiry)s or %(keeps_inquiries)s then next_verify_at end
where id = %(attempt)s
returning extract(epoch from mizan_now() - sent_at)::float8"""

# The provider's reference replaces one that an operator typed. An operator's never replaces another.
_SET_REFERENCE = """
update payment_attempts
set provider_reference = %(provider_reference)s, reference_from_operator = %(is_from_operator)s
where id = %(attempt)s and (provider_reference is null or reference_from_operator and not %(is_from_operator)s)"""
# The provider charged one attempt twice, under two references.
_INSERT_DUPLICATE = """
insert into payment_attempts (intent_uuid, method, provider, provider_account_id, state, reason, provider_reference)
select intent_uuid, method, provider, provider_account_id, 'duplicate', 'charged again', %(provider_reference)s
from payment_attempts as charged
where id = %(attempt)s
  and not exists (select from payment_attempts as known where known.intent_uuid = charged.intent_uuid
                  and known.provider_reference = %(provider_reference)s)"""


def settle_response(
    connection: Connection[Any], request: ProviderRequest, outcome: AttemptOutcome
) -> SettlementResult:
    """Settle the provider's response to `request`, or that there was none in time. Raises AttemptNotFoundError."""
    found = lock_attempt(connection, request.attempt)
    answer = answer_in_response(found.snapshot, request.number, outcome.answer)
    return _apply_answer(connection, found, answer, outcome, is_own_report=True)


def make_inquiry(cursor: Cursor[Any], attempt: UUID) -> StatusInquiry | None:
    """Return a status inquiry, to be sent now and settled with its answer; None if there is no such attempt."""
    row = cursor.execute(_MAKE_INQUIRY, (attempt,)).fetchone()
    if row is None:
        return None
    number, sent_at, now = row
    return StatusInquiry(attempt, number, is_past_in_flight_window(sent_at, now))


def settle_inquiry(
    connection: Connection[Any], inquiry: StatusInquiry, outcome: AttemptOutcome
) -> SettlementResult:
    """Settle the provider's answer to a status inquiry. Raises AttemptNotFoundError."""
    found = lock_attempt(connection, inquiry.attempt)
    answer = answer_to_inquiry(
        found.snapshot,
        inquiry.number,
        outcome.answer,
        past_in_flight_window=inquiry.past_in_flight_window,
    )
    return _apply_answer(connection, found, answer, outcome, is_own_report=False)


def settle_notification(
    connection: Connection[Any], attempt: UUID, outcome: AttemptOutcome
) -> SettlementResult:
    """Settle a signed notification or a customer's return: paid or declined. Raises AttemptNotFoundError."""
    found = lock_attempt(connection, attempt)
    answer = answer_in_notification(found.snapshot, outcome.answer)
    return _apply_answer(connection, found, answer, outcome, is_own_report=True)


def settle_decision(connection: Connection[Any], attempt: UUID, outcome: AttemptOutcome) -> SettlementResult:
    """Settle an operator's decision: paid or declined. Raises AttemptNotFoundError."""
    return _apply_outcome(connection, lock_attempt(connection, attempt), outcome, is_own_report=False)


def _apply_answer(
    connection: Connection[Any],
    found: LockedAttempt,
    answer: ProviderAnswer | None,
    outcome: AttemptOutcome,
    *,
    is_own_report: bool,
) -> SettlementResult:
    """Apply the outcome with the answer that counts; with None, nothing."""
    if answer is None:
        return SettlementResult(found.state, found.intent_status)
    return _apply_outcome(connection, found, replace(outcome, answer=answer), is_own_report=is_own_report)


def _apply_outcome(
    connection: Connection[Any], found: LockedAttempt, outcome: AttemptOutcome, *, is_own_report: bool
) -> SettlementResult:
    before, status = found.state, found.intent_status
    change = change_after(before, outcome.answer, status)
    if before in CHARGED:
        _record_reference(connection, found.id, outcome)
    if change is None:
        return SettlementResult(before, status)
    after = change.state
    if change.trigger is not None:
        status = intents.apply_trigger(
            connection, found.intent, change.trigger, wrong_code=outcome.wrong_code
        )
        after = abandon_if_unpayable(after, status)
    values = {
        "attempt": found.id,
        "state": after,
        "reason": outcome.reason,
        "provider_reference": outcome.provider_reference,
        "keeps_reference": outcome.provider_reference is None
        or (outcome.is_from_operator and found.has_provider_reference),
        "is_from_operator": outcome.is_from_operator,
        "needs_inquiry": needs_inquiry(after, can_inquire=outcome.can_inquire),
        "keeps_inquiries": keeps_inquiries(found.snapshot, after, is_own_report=is_own_report),
    }
    since_sent_s = fetch_scalar(connection, _SETTLE, values)
    return SettlementResult(after, status, is_new=after is not before, since_sent_s=since_sent_s)


def _record_reference(connection: Connection[Any], attempt: UUID, outcome: AttemptOutcome) -> None:
    """Record every reference under which the provider charged the customer: a refund needs it."""
    if outcome.answer is ProviderAnswer.PAID and outcome.provider_reference is not None:
        values = {
            "attempt": attempt,
            "provider_reference": outcome.provider_reference,
            "is_from_operator": outcome.is_from_operator,
        }
        is_set = connection.execute(_SET_REFERENCE, values).rowcount
        if not is_set and not outcome.is_from_operator:
            connection.execute(_INSERT_DUPLICATE, values)
