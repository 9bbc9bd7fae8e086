"""Requests status inquiries from the verifier, and records the answers that operators wait for.

An operator's inquiry is a row. The record on checkout.verify only names the attempt: the verifier answers the rows that
it finds in the database, with what the provider itself told it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor

from shared.domain.applications.provider_accounts import ProviderName
from shared.domain.attempts.decision_rules import (
    ANSWER_VALID_FOR,
    OutcomeKnownError,
    RecordedAnswer,
    is_definite,
    to_recorded_answer,
)
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.settlement import lock_attempt
from shared.domain.attempts.settlement_rules import is_past_in_flight_window
from shared.domain.attempts.states import CHARGED, IN_FLIGHT, AttemptSnapshot, AttemptState
from shared.domain.audit_log import Action, Actor, add_audit_entry
from shared.domain.messages import VerificationDue, encode
from shared.domain.topics import CHECKOUT_VERIFY
from shared.platform.database.pool import fetch_scalar
from shared.platform.errors import RefusedError

_WITHOUT_STATUS_CALL = frozenset({ProviderName.PLUTU})
_REPEAT_AFTER = timedelta(seconds=30)
"""An inquiry that is younger and has no answer yet is not sent again."""

_QUEUE = """
insert into outbox (topic, key, payload, trace)
values (%(topic)s, %(attempt)s, %(payload)s,
        (select i.trace from payment_attempts as t join payment_intents as i on i.uuid = t.intent_uuid
         where t.id = %(attempt)s))"""
_OWNER = "select application_id from payment_intents where uuid = %s"
_FIND_RECENT = """
select id from operator_inquiries
where attempt_id = %s and answer is null and asked_at > mizan_now() - %s order by id desc limit 1"""
_ADD = "insert into operator_inquiries (attempt_id, asked_by, operator_id) values (%s, %s, %s) returning id"
_FIND_OPEN = """
select t.state, t.provider_requests,
       array(select o.id from operator_inquiries as o where o.attempt_id = t.id and o.answer is null order by o.id)
from payment_attempts as t where t.id = %s"""
_RECORD = """
update operator_inquiries
set answer = %(answer)s, provider_reference = %(reference)s, answered_at = mizan_now(),
    state = %(state)s, provider_requests = %(provider_requests)s
where id = any(%(ids)s) and answer is null"""
_COLUMNS = "id, asked_by, asked_at, answer, provider_reference, answered_at, state, provider_requests"
_FIND = f"select {_COLUMNS} from operator_inquiries"
_GET = f"{_FIND} where id = %s"
_LATEST = f"{_FIND} where attempt_id = %s order by id desc limit 1"
_RECENT_ANSWERS = f"""
select {_COLUMNS}, (select sent_at from payment_attempts where id = attempt_id)
from operator_inquiries
where attempt_id = %s and answered_at > mizan_now() - %s order by answered_at desc, id desc"""


class CannotBeAskedError(RefusedError):
    def __init__(self, provider: str) -> None:
        super().__init__(f"{provider} has no status call; look the payment up there")


@dataclass(frozen=True, slots=True)
class OperatorInquiry:
    id: UUID
    asked_by: str
    asked_at: datetime
    answer: RecordedAnswer | None = None
    """None while the verifier has recorded none."""
    provider_reference: str | None = None
    answered_at: datetime | None = None
    about: AttemptSnapshot | None = None
    """The attempt that the answer is about."""


@dataclass(frozen=True, slots=True)
class OpenInquiries:
    """The inquiries of operators that the next answer of the provider is for, and the attempt as it is now."""

    ids: list[UUID]
    about: AttemptSnapshot


def can_be_asked(provider: str) -> bool:
    """Return whether the provider has a status call. One that is not known here is asked."""
    return provider not in _WITHOUT_STATUS_CALL


def request_inquiries(cursor: Cursor[Any], attempts: Iterable[UUID]) -> None:
    """Tell the verifier to ask the providers of these attempts. Call it in a transaction."""
    cursor.executemany(
        _QUEUE,
        [
            {
                "topic": CHECKOUT_VERIFY.name,
                "attempt": attempt,
                "payload": encode(VerificationDue(attempt)).decode(),
            }
            for attempt in attempts
        ],
    )


def ask_provider(connection: Connection[Any], attempt: UUID, actor: Actor) -> UUID:
    """Have the provider asked about the attempt, and return the id of the inquiry; a repeat within seconds finds it.

    Raises AttemptNotFoundError, OutcomeKnownError if the attempt was charged, and CannotBeAskedError.
    """
    found = lock_attempt(connection, attempt)
    if found.state in CHARGED:
        raise OutcomeKnownError(found.state)
    if not can_be_asked(found.provider):
        raise CannotBeAskedError(found.provider)
    recent = connection.execute(_FIND_RECENT, (attempt, _REPEAT_AFTER)).fetchone()
    if recent is not None:
        return UUID(str(recent[0]))
    inquiry = fetch_scalar(connection, _ADD, (attempt, actor.name, actor.operator_id))
    with connection.cursor() as cursor:
        request_inquiries(cursor, [attempt])
    add_audit_entry(
        connection,
        actor,
        Action.PROVIDER_ASKED,
        application_id=fetch_scalar(connection, _OWNER, (found.intent,)),
        details={"attempt": str(attempt), "payment": str(found.intent)},
    )
    return UUID(str(inquiry))


def find_open_inquiries(cursor: Cursor[Any], attempt: UUID) -> OpenInquiries | None:
    """Return the inquiries without an answer; None if there are none. Call it before the provider is asked."""
    row = cursor.execute(_FIND_OPEN, (attempt,)).fetchone()
    if row is None or not row[2]:
        return None
    return OpenInquiries(row[2], AttemptSnapshot(AttemptState(row[0]), row[1]))


def snapshot_answered(
    asked: AttemptSnapshot, before: AttemptSnapshot, after: AttemptState
) -> AttemptSnapshot:
    """Return the attempt that an answer is about, if settling the answer changed the attempt from `before` to `after`.

    What the answer itself has changed does not make it outdated. Any other change since the provider was asked does.
    """
    return replace(before, state=after) if asked.matches(before) else asked


def choose_answer(
    newest_first: Sequence[OperatorInquiry], current: AttemptSnapshot, sent_at: datetime | None
) -> OperatorInquiry | None:
    """Return the answer to decide with: about the attempt as it is now, whose last request was sent at `sent_at`. Pure.

    The last definite one counts, so that nobody can ask until the provider is away. While the attempt is in flight,
    "not paid" counts only if the provider was asked after the in-flight window: before, the request could still arrive.
    """
    answers = [
        one
        for one in newest_first
        if one.answer
        and one.about
        and one.about.matches(current)
        and not (
            one.answer in (RecordedAnswer.DECLINED, RecordedAnswer.NOT_PAID)
            and current.state in IN_FLIGHT
            and not is_past_in_flight_window(sent_at, one.asked_at)
        )
    ]
    definite = [one for one in answers if one.answer and is_definite(one.answer)]
    return next(iter(definite or answers), None)


def record_answer(
    connection: Connection[Any],
    inquiries: OpenInquiries,
    outcome: AttemptOutcome,
    before: AttemptSnapshot,
    after: AttemptState,
) -> None:
    """Record the provider's answer to `inquiries`, in the transaction that settled it: from `before` to `after`."""
    about = snapshot_answered(inquiries.about, before, after)
    values = {
        "ids": inquiries.ids,
        "answer": to_recorded_answer(outcome),
        "reference": outcome.provider_reference,
        "state": about.state,
        "provider_requests": about.provider_requests,
    }
    connection.execute(_RECORD, values)


def get_inquiry(cursor: Cursor[Any], inquiry: UUID) -> OperatorInquiry:
    row = cursor.execute(_GET, (inquiry,)).fetchone()
    assert row is not None
    return _inquiry(row)


def find_latest_inquiry(connection: Connection[Any], attempt: UUID) -> OperatorInquiry | None:
    row = connection.execute(_LATEST, (attempt,)).fetchone()
    return None if row is None else _inquiry(row)


def find_valid_answer(
    connection: Connection[Any], attempt: UUID, current: AttemptSnapshot
) -> OperatorInquiry | None:
    """Return the answer to decide with: recent, and about the attempt as it is now (`choose_answer`)."""
    rows = connection.execute(_RECENT_ANSWERS, (attempt, ANSWER_VALID_FOR)).fetchall()
    return choose_answer([_inquiry(row[:-1]) for row in rows], current, rows[0][-1]) if rows else None


def _inquiry(row: tuple[Any, ...]) -> OperatorInquiry:
    id_, asked_by, asked_at, answer, reference, answered_at, state, provider_requests = row
    if answer is None:
        return OperatorInquiry(id_, asked_by, asked_at)
    about = AttemptSnapshot(AttemptState(state), provider_requests)
    return OperatorInquiry(id_, asked_by, asked_at, RecordedAnswer(answer), reference, answered_at, about)
