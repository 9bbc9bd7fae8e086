"""The timeline of a payment: everything that happened to it, in order. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from services.dashboard.payments.queries import PaymentAttempt, PaymentDelivery, PaymentEvent, PaymentHistory
from shared.domain.attempts.states import MAX_CODE_TRIES, AttemptState
from shared.domain.intents.states import EventType, without_refused_codes


class EntryKind(StrEnum):
    """Entries with the same time are shown in this order."""

    CREATED = "created"
    ATTEMPT_STARTED = "attempt_started"
    PROCESSING = "processing"
    WRONG_CODE = "wrong_code"
    ATTEMPT_PAID = "attempt_paid"
    ATTEMPT_DECLINED = "attempt_declined"
    ATTEMPT_ABANDONED = "attempt_abandoned"
    OPEN_AGAIN = "open_again"
    PAID = "paid"
    PAID_LATE = "paid_late"
    SECOND_PAYMENT = "second_payment"
    EXPIRED = "expired"
    WEBHOOK = "webhook"


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    at: datetime
    kind: EntryKind
    attempt: PaymentAttempt | None = None
    delivery: PaymentDelivery | None = None
    wrong_code: int | None = None
    """Which of the MAX_CODE_TRIES entries of a code was wrong."""


_KIND_OF_EVENT = {
    EventType.CREATED: EntryKind.CREATED,
    EventType.PROCESSING: EntryKind.PROCESSING,
    EventType.REQUIRES_PAYMENT_METHOD: EntryKind.OPEN_AGAIN,
    EventType.SUCCEEDED: EntryKind.PAID,
    EventType.CANCELED: EntryKind.EXPIRED,
}
_KIND_OF_FINAL_STATE = {
    AttemptState.PAID: EntryKind.ATTEMPT_PAID,
    AttemptState.DECLINED: EntryKind.ATTEMPT_DECLINED,
    AttemptState.ABANDONED: EntryKind.ATTEMPT_ABANDONED,
    AttemptState.DUPLICATE: EntryKind.SECOND_PAYMENT,
}
_RESULTING_EVENT = {
    EntryKind.ATTEMPT_PAID: EventType.SUCCEEDED,
    EntryKind.ATTEMPT_DECLINED: EventType.REQUIRES_PAYMENT_METHOD,
}
"""The intent event that follows from the end of an attempt. It is recorded a moment before the end itself."""
_TOLERANCE = timedelta(seconds=1)
_ORDER = list(EntryKind)


def build_timeline(payment: PaymentHistory) -> list[TimelineEntry]:
    entries = [
        *_entries_of_events(payment.events),
        *(entry for attempt in payment.attempts for entry in _entries_of_attempt(attempt)),
        *(TimelineEntry(each.created_at, EntryKind.WEBHOOK, delivery=each) for each in payment.deliveries),
    ]
    return sorted(entries, key=lambda entry: _sort_key(entry, payment.events))


def _entries_of_events(events: list[PaymentEvent]) -> Iterator[TimelineEntry]:
    has_expired = False
    for event in without_refused_codes(events):
        if event.wrong_code is not None:
            yield TimelineEntry(event.at, EntryKind.WRONG_CODE, wrong_code=event.wrong_code)
            if event.wrong_code < MAX_CODE_TRIES:
                continue  # the customer can enter another one
        kind = _KIND_OF_EVENT.get(EventType(event.type)) if event.type in set(EventType) else None
        if kind is None:
            continue
        yield TimelineEntry(event.at, EntryKind.PAID_LATE if kind is EntryKind.PAID and has_expired else kind)
        has_expired = has_expired or kind is EntryKind.EXPIRED


def _entries_of_attempt(attempt: PaymentAttempt) -> Iterator[TimelineEntry]:
    end = _KIND_OF_FINAL_STATE.get(AttemptState(attempt.state))
    # A duplicate charge of one attempt has no start of its own.
    if end is not EntryKind.SECOND_PAYMENT or attempt.updated_at > attempt.created_at:
        yield TimelineEntry(attempt.created_at, EntryKind.ATTEMPT_STARTED, attempt=attempt)
    if end is not None:
        yield TimelineEntry(attempt.updated_at, end, attempt=attempt)


def _sort_key(entry: TimelineEntry, events: list[PaymentEvent]) -> tuple[datetime, int]:
    """Sort the end of an attempt before the intent event that followed from it."""
    following = [
        event.at
        for event in events
        if event.type == _RESULTING_EVENT.get(entry.kind) and timedelta() <= entry.at - event.at < _TOLERANCE
    ]
    return max(following, default=entry.at), _ORDER.index(entry.kind)
