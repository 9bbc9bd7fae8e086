"""The one room that moves attempts, and their intents with them, in the transaction of the caller.

No transaction may be open while a provider is called: begin or send, commit, call, settle. Whoever moves an attempt
holds the lock of its intent, so the moves of one intent's attempts follow each other.
"""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor
from psycopg.rows import class_row

from shared.attempts.outcome import Outcome, Sending, Settled
from shared.attempts.refusals import (
    AlreadyPaidError,
    AttemptUnderWayError,
    IntentExpiredError,
    NotAwaitingCodeError,
    RedirectOpenError,
)
from shared.attempts.states import AWAITING, UNDER_WAY, Answer, AttemptState, answered, trigger_of
from shared.attempts.verification import ASK_AGAIN_AFTER_S, FIRST_ASKED_AFTER, SURELY_ARRIVED_AFTER, believed
from shared.intents import store as intents
from shared.intents.states import State, Trigger


class AttemptNotFoundError(Exception):
    """No attempt has this id."""


_AWAITING = "state in ('awaiting_code', 'awaiting_redirect')"

_FIND_AWAITING = f"select state from payment_attempts where intent_uuid = %s and {_AWAITING}"
_ABANDON = f"""
update payment_attempts set state = 'abandoned', updated_at = mizan_now() where intent_uuid = %s and {_AWAITING}"""

_INSERT = """
insert into payment_attempts (intent_uuid, method, provider, state, sendings, sent_at, next_verify_at)
select %(intent)s, %(method)s, %(provider)s, %(state)s, count(now), max(now), max(now) + %(asked_after)s
from (select mizan_now() as now where %(state)s = 'sent') as sent
returning id, sendings"""
_SEND = """
update payment_attempts
set state = 'sent', sendings = sendings + 1, sent_at = mizan_now(), next_verify_at = mizan_now() + %(asked_after)s,
    verifications = 0, reason = null, updated_at = mizan_now()
where id = %(attempt)s returning sendings"""
_SETTLE = """
update payment_attempts
set state = %(state)s, reason = %(reason)s, updated_at = mizan_now(),
    provider_reference = coalesce(%(provider_reference)s, provider_reference),
    next_verify_at = case when %(state)s <> 'unknown' or not %(can_be_asked)s then null
                          when state = 'sent' then mizan_now()
                          else next_verify_at end
where id = %(attempt)s"""

_FIND_INTENT = "select intent_uuid from payment_attempts where id = %s"
_FIND = """
select state, sendings, coalesce(sent_at + %(arrives_after)s <= mizan_now(), true) as surely_arrived
from payment_attempts where id = %(attempt)s"""

_CLAIM = """
update payment_attempts
set verifications = verifications + 1,
    next_verify_at = mizan_now() + make_interval(
        secs => (%(pauses)s::float8[])[least(verifications + 1, cardinality(%(pauses)s::float8[]))])
where ctid = any(array(
    select ctid from payment_attempts where state in ('sent', 'unknown') and next_verify_at <= mizan_now()
    order by next_verify_at limit %(limit)s for no key update skip locked))
returning id, sendings"""


@dataclass(frozen=True, slots=True)
class _Found:
    state: AttemptState
    sendings: int
    surely_arrived: bool


def begin(
    connection: Connection[Any],
    intent: UUID,
    method: str,
    provider: str,
    state: AttemptState,
    *,
    leave_redirect: bool = False,
) -> Sending:
    """A new attempt: sent, where starting it may charge; awaiting, where that only asks the customer for more.

    It takes the place of one that awaits a code, and, only if `leave_redirect`, of one on a provider's page.
    """
    _refuse_unless_payable(connection, intent)
    awaiting = connection.execute(_FIND_AWAITING, (intent,)).fetchall()
    if (AttemptState.AWAITING_REDIRECT,) in awaiting and not leave_redirect:
        raise RedirectOpenError
    if awaiting:
        connection.execute(_ABANDON, (intent,))
    values = {
        "intent": intent,
        "method": method,
        "provider": provider,
        "state": state,
        "asked_after": FIRST_ASKED_AFTER,
    }
    row = connection.execute(_INSERT, values).fetchone()
    assert row is not None
    if state is AttemptState.SENT:
        intents.apply(connection, intent, Trigger.ATTEMPT_SENT)
    return Sending(UUID(str(row[0])), row[1])


def send(connection: Connection[Any], attempt: UUID) -> Sending:
    """The customer has entered a code: commit this, then give the code to the provider."""
    intent = _intent_of(connection, attempt)
    _refuse_unless_payable(connection, intent)
    if _find(connection, attempt).state is not AttemptState.AWAITING_CODE:
        raise NotAwaitingCodeError
    row = connection.execute(_SEND, {"attempt": attempt, "asked_after": FIRST_ASKED_AFTER}).fetchone()
    assert row is not None
    intents.apply(connection, intent, Trigger.ATTEMPT_SENT)
    return Sending(attempt, row[0])


def settle(connection: Connection[Any], sending: Sending, outcome: Outcome) -> Settled:
    """Takes in the provider's answer to that request, or that there was none in time."""
    intent = intents.lock(connection, _intent_of(connection, sending.attempt))
    found = _find(connection, sending.attempt)
    if found.sendings != sending.number and outcome.answer is not Answer.PAID:
        return Settled(found.state, intent.status)
    return _take_in(connection, intent, sending.attempt, found, outcome)


def settle_asked(connection: Connection[Any], sending: Sending, outcome: Outcome) -> Settled:
    """Takes in what the provider says when it is asked what became of that request."""
    intents.lock(connection, _intent_of(connection, sending.attempt))
    surely_arrived = _find(connection, sending.attempt).surely_arrived
    answer = believed(outcome.answer, surely_arrived=surely_arrived)
    return settle(connection, sending, replace(outcome, answer=answer))


def settle_told(connection: Connection[Any], attempt: UUID, outcome: Outcome) -> Settled:
    """Takes in final news, paid or declined, that belongs to no request of ours: a signed notification, the
    customer's return, an operator's decision. The same news again changes nothing."""
    assert outcome.answer in (Answer.PAID, Answer.DECLINED)
    intent = intents.lock(connection, _intent_of(connection, attempt))
    return _take_in(connection, intent, attempt, _find(connection, attempt), outcome)


def claim_verifications(cursor: Cursor[Any], limit: int) -> list[Sending]:
    """Requests that it is time to ask the provider about; their next time is set, with growing pauses."""
    values = {"pauses": list(ASK_AGAIN_AFTER_S), "limit": limit}
    return [Sending(UUID(str(attempt)), number) for attempt, number in cursor.execute(_CLAIM, values)]


def _refuse_unless_payable(connection: Connection[Any], uuid: UUID) -> None:
    intent = intents.lock(connection, uuid)
    if intent.status is State.SUCCEEDED:
        raise AlreadyPaidError
    if intent.status is State.PROCESSING:
        raise AttemptUnderWayError
    if intent.status is State.CANCELED or intent.is_over:
        raise IntentExpiredError


def _take_in(
    connection: Connection[Any], intent: intents.LockedIntent, attempt: UUID, found: _Found, outcome: Outcome
) -> Settled:
    before, after = found.state, answered(found.state, outcome.answer)
    if after is before and after not in UNDER_WAY | AWAITING:
        return Settled(after, intent.status)
    if after is AttemptState.PAID and intent.status is State.SUCCEEDED:
        after = AttemptState.DUPLICATE
    trigger = trigger_of(before, after)
    status = intents.apply(connection, intent.uuid, trigger) if trigger else intent.status
    if before in UNDER_WAY and after in AWAITING and status is not State.REQUIRES_PAYMENT_METHOD:
        after = AttemptState.ABANDONED  # its time was over meanwhile, or another attempt has paid
    values = {
        "attempt": attempt,
        "state": after,
        "reason": outcome.reason,
        "provider_reference": outcome.provider_reference,
        "can_be_asked": outcome.can_be_asked,
    }
    connection.execute(_SETTLE, values)
    return Settled(after, status)


def _intent_of(connection: Connection[Any], attempt: UUID) -> UUID:
    row = connection.execute(_FIND_INTENT, (attempt,)).fetchone()
    if row is None:
        raise AttemptNotFoundError(str(attempt))
    return UUID(str(row[0]))


def _find(connection: Connection[Any], attempt: UUID) -> _Found:
    values = {"attempt": attempt, "arrives_after": SURELY_ARRIVED_AFTER}
    with connection.cursor(row_factory=class_row(_Found)) as cursor:
        found = cursor.execute(_FIND, values).fetchone()
    assert found is not None
    return replace(found, state=AttemptState(found.state))
