"""Queries for one payment attempt, with its payment, the other attempts and the events of that payment."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from shared.domain.attempts.decision_proposals import WaitingDecision, list_waiting
from shared.domain.attempts.decision_rules import can_decide, needs_approval
from shared.domain.attempts.states import AttemptSnapshot, AttemptState, ProviderAnswer
from shared.domain.attempts.status_inquiries import (
    OperatorInquiry,
    can_be_asked,
    find_latest_inquiry,
    find_valid_answer,
)
from shared.domain.intents.states import without_refused_codes

_MAX_LISTED = 100
_MARGIN_MS = 3_600_000
"""Events are created after their intent. The margin of an hour covers clock skew and keeps old partitions out."""

_GET = """
select t.id, t.intent_uuid as intent, t.method, t.provider, t.state, t.provider_requests, t.reason,
       t.provider_reference,
       t.sent_at, t.verifications, t.next_verify_at, t.created_at, t.updated_at, t.handled_at, t.handled_note,
       i.reference, i.merchant_reference, i.amount, i.currency, i.status as intent_status, i.expires_at,
       i.application_id, a.name as application, m.name as merchant
from payment_attempts as t join payment_intents as i on i.uuid = t.intent_uuid
left join applications as a on a.id = i.application_id
left join merchants as m on m.id = a.merchant_id
where t.id = %s"""
_ALL = f"""
select id, method, provider, state, provider_reference, created_at, updated_at from payment_attempts
where intent_uuid = %s order by id desc limit {_MAX_LISTED}"""
_EVENTS = f"""
select type, at, wrong_code from intent_events
where intent_uuid = %(intent)s and id >= %(since)s order by seq desc limit {_MAX_LISTED}"""


@dataclass(frozen=True, slots=True)
class Attempt:
    id: UUID
    intent: UUID
    method: str
    provider: str
    state: AttemptState
    provider_requests: int
    reason: str | None
    provider_reference: str | None
    sent_at: datetime | None
    verifications: int
    next_verify_at: datetime | None
    created_at: datetime
    updated_at: datetime
    handled_at: datetime | None
    handled_note: str | None
    reference: str
    merchant_reference: str
    amount: int
    currency: str
    intent_status: str
    expires_at: datetime
    application_id: UUID
    application: str | None
    merchant: str | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", AttemptState(self.state))

    @property
    def seen(self) -> AttemptSnapshot:
        return AttemptSnapshot(self.state, self.provider_requests)

    @property
    def can_be_paid(self) -> bool:
        return can_decide(self.state, ProviderAnswer.PAID)

    @property
    def can_be_declined(self) -> bool:
        return can_decide(self.state, ProviderAnswer.DECLINED)

    def needs_approval(self, approval_above: int) -> bool:
        """Return whether a second operator has to approve that it was paid."""
        return needs_approval(self.state, self.amount, approval_above, is_paid=True)

    @property
    def is_open_duplicate(self) -> bool:
        return self.state is AttemptState.DUPLICATE and self.handled_at is None


@dataclass(frozen=True, slots=True)
class RelatedAttempt:
    """An attempt of the same payment."""

    id: UUID
    method: str
    provider: str
    state: str
    provider_reference: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class IntentEvent:
    type: str
    at: datetime
    wrong_code: int | None
    """Which entry of a code it was, if the event followed from a wrong one-time code."""


@dataclass(frozen=True, slots=True)
class AttemptDetails:
    attempt: Attempt
    related: list[RelatedAttempt]
    """All attempts of the payment, this one included, newest first. The events are newest first too."""
    events: list[IntentEvent]
    inquiry: OperatorInquiry | None
    """The last inquiry of an operator."""
    answer: OperatorInquiry | None
    """The recent answer about the attempt as it is now, which a decision needs if the provider can be asked."""
    waiting: WaitingDecision | None
    """The decision that waits for approval."""

    @property
    def can_be_asked(self) -> bool:
        return self.attempt.can_be_paid and can_be_asked(self.attempt.provider)

    @property
    def is_answer_awaited(self) -> bool:
        return self.can_be_asked and self.inquiry is not None and self.inquiry.answer is None

    @property
    def may_be_decided(self) -> bool:
        """Return whether to show the form. Not while an answer is awaited, because the page reloads when it comes."""
        is_answered = self.answer is not None and not self.is_answer_awaited
        return self.attempt.can_be_paid and (is_answered or not self.can_be_asked)


def find_attempt(connection: Connection[Any], attempt_id: UUID) -> AttemptDetails | None:
    with connection.cursor(row_factory=class_row(Attempt)) as cursor:
        attempt = cursor.execute(_GET, (attempt_id,)).fetchone()
    if attempt is None:
        return None
    with connection.cursor(row_factory=class_row(RelatedAttempt)) as cursor:
        related = cursor.execute(_ALL, (attempt.intent,)).fetchall()
    values = {"intent": attempt.intent, "since": _oldest_event_id(attempt.intent)}
    with connection.cursor(row_factory=class_row(IntentEvent)) as cursor:
        events = cursor.execute(_EVENTS, values).fetchall()
    return AttemptDetails(
        attempt,
        related,
        without_refused_codes(events[::-1])[::-1],
        find_latest_inquiry(connection, attempt_id),
        find_valid_answer(connection, attempt_id, attempt.seen),
        next(iter(list_waiting(connection, 1, attempt_id)), None),
    )


def _oldest_event_id(intent: UUID) -> UUID:
    created_ms = intent.int >> 80
    return UUID(int=max(0, created_ms - _MARGIN_MS) << 80)
