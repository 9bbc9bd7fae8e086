"""An attempt and its intent, locked: the intent first, so that the moves of one intent's attempts follow each other."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.attempts.provider_exchange import (
    AttemptOutcome,
    ProviderRequest,
    SettlementResult,
    StatusInquiry,
)
from shared.domain.attempts.states import (
    CHARGED,
    IN_FLIGHT,
    AttemptState,
    ProviderAnswer,
    abandon_if_unpayable,
    intent_trigger,
    state_after,
    trusted_answer,
)
from shared.domain.intents import store as intents
from shared.domain.intents.states import IntentStatus
from shared.platform.database.pool import fetch_scalar

_FIND_INTENT = "select intent_uuid from payment_attempts where id = %s"
_FIND = "select state, provider_requests from payment_attempts where id = %s"


class AttemptNotFoundError(Exception):
    """No attempt has this id."""


@dataclass(frozen=True, slots=True)
class LockedAttempt:
    """Nobody else changes it, or its intent, until the transaction ends."""

    id: UUID
    state: AttemptState
    provider_requests: int
    """How many requests that may charge there were."""
    intent: UUID
    intent_status: IntentStatus


def lock_attempt(connection: Connection[Any], attempt: UUID) -> LockedAttempt:
    row = connection.execute(_FIND_INTENT, (attempt,)).fetchone()
    if row is None:
        raise AttemptNotFoundError(str(attempt))
    intent = UUID(str(row[0]))
    status = intents.lock_intent(connection, intent)
    found = connection.execute(_FIND, (attempt,)).fetchone()
    assert found is not None
    return LockedAttempt(attempt, AttemptState(found[0]), found[1], intent, status)


# Where the outcome has just become unknown it is asked for at once; otherwise as was planned.
_SETTLE = """
update payment_attempts
set state = %(state)s, reason = %(reason)s, updated_at = mizan_now(),
    provider_reference = coalesce(%(provider_reference)s, provider_reference),
    next_verify_at = case when %(state)s <> 'unknown' or not %(can_inquire)s then null
                          when next_verify_at is null or verifications = 0 then mizan_now()
                          else next_verify_at end
where id = %(attempt)s
returning extract(epoch from mizan_now() - sent_at)::float8"""

_FILL_REFERENCE = """
update payment_attempts set provider_reference = %(provider_reference)s
where id = %(attempt)s and provider_reference is null"""
# The provider has charged one attempt twice, under two references of its own.
_KEEP_DUPLICATE = """
insert into payment_attempts (intent_uuid, method, provider, provider_account_id, state, reason, provider_reference)
select intent_uuid, method, provider, provider_account_id, 'duplicate', 'charged again', %(provider_reference)s
from payment_attempts as charged
where id = %(attempt)s
  and not exists (select from payment_attempts as known where known.intent_uuid = charged.intent_uuid
                  and known.provider_reference = %(provider_reference)s)"""


def settle_response(
    connection: Connection[Any], request: ProviderRequest, outcome: AttemptOutcome
) -> SettlementResult:
    """The provider's answer to that request, or that there was none in time."""
    found = lock_attempt(connection, request.attempt)
    if _is_old_news(found, request.number, outcome):
        return SettlementResult(found.state, found.intent_status)
    return _take_in(connection, found, outcome)


def settle_inquiry(
    connection: Connection[Any], inquiry: StatusInquiry, outcome: AttemptOutcome
) -> SettlementResult:
    """What the provider said when it was asked."""
    found = lock_attempt(connection, inquiry.attempt)
    if _is_old_news(found, inquiry.number, outcome):
        return SettlementResult(found.state, found.intent_status)
    answer = trusted_answer(
        outcome.answer,
        past_in_flight_window=inquiry.past_in_flight_window,
        is_first_request=inquiry.number <= 1,
    )
    return _take_in(connection, found, replace(outcome, answer=answer))


def settle_notification(
    connection: Connection[Any], attempt: UUID, outcome: AttemptOutcome
) -> SettlementResult:
    """What the provider says by itself, paid or declined: a signed notification, the customer's return."""
    found = lock_attempt(connection, attempt)
    if outcome.answer is ProviderAnswer.DECLINED and found.state in IN_FLIGHT and found.provider_requests > 1:
        # Of which of the requests, nobody knows, and the last one may be charging: the provider is asked at once.
        outcome = replace(outcome, answer=ProviderAnswer.UNKNOWN)
    return _take_in(connection, found, outcome)


def settle_decision(connection: Connection[Any], attempt: UUID, outcome: AttemptOutcome) -> SettlementResult:
    """An operator's decision, paid or declined."""
    return _take_in(connection, lock_attempt(connection, attempt), outcome)


def _is_old_news(found: LockedAttempt, number: int, outcome: AttemptOutcome) -> bool:
    """About an earlier request than the last one. Money that arrived is never old."""
    return found.provider_requests != number and outcome.answer is not ProviderAnswer.PAID


def _take_in(connection: Connection[Any], found: LockedAttempt, outcome: AttemptOutcome) -> SettlementResult:
    before, status = found.state, found.intent_status
    after = state_after(before, outcome.answer, status)
    if before in CHARGED:
        _keep_reference(connection, found.id, outcome)
    if after is before and after not in IN_FLIGHT:
        return SettlementResult(after, status)
    trigger = intent_trigger(before, after)
    if trigger is not None:
        status = intents.apply_trigger(connection, found.intent, trigger)
        after = abandon_if_unpayable(after, status)
    values = {
        "attempt": found.id,
        "state": after,
        "reason": outcome.reason,
        "provider_reference": outcome.provider_reference,
        "can_inquire": outcome.can_inquire,
    }
    since_sent_s = fetch_scalar(connection, _SETTLE, values)
    return SettlementResult(after, status, is_new=after is not before, since_sent_s=since_sent_s)


def _keep_reference(connection: Connection[Any], attempt: UUID, outcome: AttemptOutcome) -> None:
    """Whoever has to pay money back needs every reference under which it was taken."""
    if outcome.answer is ProviderAnswer.PAID and outcome.provider_reference is not None:
        values = {"attempt": attempt, "provider_reference": outcome.provider_reference}
        if not connection.execute(_FILL_REFERENCE, values).rowcount:
            connection.execute(_KEEP_DUPLICATE, values)
