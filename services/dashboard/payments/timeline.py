"""What happened to a payment, in the order in which it happened. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from services.dashboard.payments.looking import Attempt, Delivery, Event, PaymentInFull
from shared.domain.attempts.states import AttemptState
from shared.domain.intents.states import EventType


class Kind(StrEnum):
    """Those of one instant happen in this order."""

    CREATED = "created"
    ATTEMPT_BEGAN = "attempt_began"
    PROCESSING = "processing"
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
class Moment:
    at: datetime
    kind: Kind
    attempt: Attempt | None = None
    delivery: Delivery | None = None


_OF_EVENT = {
    EventType.CREATED: Kind.CREATED,
    EventType.PROCESSING: Kind.PROCESSING,
    EventType.REQUIRES_PAYMENT_METHOD: Kind.OPEN_AGAIN,
    EventType.SUCCEEDED: Kind.PAID,
    EventType.CANCELED: Kind.EXPIRED,
}
_END = {
    AttemptState.PAID: Kind.ATTEMPT_PAID,
    AttemptState.DECLINED: Kind.ATTEMPT_DECLINED,
    AttemptState.ABANDONED: Kind.ATTEMPT_ABANDONED,
    AttemptState.DUPLICATE: Kind.SECOND_PAYMENT,
}
_FOLLOWS = {
    Kind.ATTEMPT_PAID: EventType.SUCCEEDED,
    Kind.ATTEMPT_DECLINED: EventType.REQUIRES_PAYMENT_METHOD,
}
"""What the end of an attempt means to its intent. It is written a moment before the end itself."""
_A_MOMENT = timedelta(seconds=1)
_ORDER = list(Kind)


def timeline_of(payment: PaymentInFull) -> list[Moment]:
    moments = [
        *_of_events(payment.events),
        *(moment for attempt in payment.attempts for moment in _of_attempt(attempt)),
        *(Moment(each.created_at, Kind.WEBHOOK, delivery=each) for each in payment.deliveries),
    ]
    return sorted(moments, key=lambda moment: _place(moment, payment.events))


def _of_events(events: list[Event]) -> Iterator[Moment]:
    has_expired = False
    for event in events:
        kind = _OF_EVENT.get(EventType(event.type)) if event.type in set(EventType) else None
        if kind is None:
            continue
        yield Moment(event.at, Kind.PAID_LATE if kind is Kind.PAID and has_expired else kind)
        has_expired = has_expired or kind is Kind.EXPIRED


def _of_attempt(attempt: Attempt) -> Iterator[Moment]:
    end = _END.get(AttemptState(attempt.state))
    # One that the provider charged twice has no beginning of its own.
    if end is not Kind.SECOND_PAYMENT or attempt.updated_at > attempt.created_at:
        yield Moment(attempt.created_at, Kind.ATTEMPT_BEGAN, attempt=attempt)
    if end is not None:
        yield Moment(attempt.updated_at, end, attempt=attempt)


def _place(moment: Moment, events: list[Event]) -> tuple[datetime, int]:
    """The end of an attempt stands before what followed from it."""
    following = [
        event.at
        for event in events
        if event.type == _FOLLOWS.get(moment.kind) and timedelta() <= moment.at - event.at < _A_MOMENT
    ]
    return min([*following, moment.at]), _ORDER.index(moment.kind)
