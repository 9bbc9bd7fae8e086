"""The state machine of a payment intent, as one table. Pure: no I/O. ARCHITECTURE.md draws it."""

from collections.abc import Sequence
from enum import StrEnum
from itertools import zip_longest
from typing import Protocol, TypeVar


class IntentStatus(StrEnum):
    REQUIRES_PAYMENT_METHOD = "requires_payment_method"
    PROCESSING = "processing"
    SUCCEEDED = "succeeded"
    CANCELED = "canceled"


class IntentTrigger(StrEnum):
    CREATE = "create"
    ATTEMPT_SENT = "attempt_sent"
    ATTEMPT_FAILED = "attempt_failed"
    ATTEMPT_WAITS = "attempt_waits"
    PAYMENT_CONFIRMED = "payment_confirmed"
    EXPIRE = "expire"


class EventType(StrEnum):
    CREATED = "payment_intent.created"
    REQUIRES_PAYMENT_METHOD = "payment_intent.requires_payment_method"
    PROCESSING = "payment_intent.processing"
    SUCCEEDED = "payment_intent.succeeded"
    CANCELED = "payment_intent.canceled"


class TransitionNotAllowedError(Exception):
    """The table does not allow this trigger in this status. The caller must read the intent again."""

    def __init__(self, status: IntentStatus | None, trigger: IntentTrigger) -> None:
        self.status = status
        self.trigger = trigger
        super().__init__(f"trigger {trigger} is not allowed in status {status or 'none'}")


# A missing pair is not allowed. A pair that maps to its own status changes nothing.
TRANSITIONS: dict[tuple[IntentStatus | None, IntentTrigger], IntentStatus] = {
    (None, IntentTrigger.CREATE): IntentStatus.REQUIRES_PAYMENT_METHOD,
    # A repeated create returns the intent as it is (§4.1 rule 2).
    (IntentStatus.REQUIRES_PAYMENT_METHOD, IntentTrigger.CREATE): IntentStatus.REQUIRES_PAYMENT_METHOD,
    (IntentStatus.PROCESSING, IntentTrigger.CREATE): IntentStatus.PROCESSING,
    (IntentStatus.SUCCEEDED, IntentTrigger.CREATE): IntentStatus.SUCCEEDED,
    (IntentStatus.CANCELED, IntentTrigger.CREATE): IntentStatus.CANCELED,
    # One attempt at a time, and none after the intent is paid or expired.
    (IntentStatus.REQUIRES_PAYMENT_METHOD, IntentTrigger.ATTEMPT_SENT): IntentStatus.PROCESSING,
    # A wallet can decline before a request is sent. A late decline never changes a final status.
    (
        IntentStatus.REQUIRES_PAYMENT_METHOD,
        IntentTrigger.ATTEMPT_FAILED,
    ): IntentStatus.REQUIRES_PAYMENT_METHOD,
    (IntentStatus.PROCESSING, IntentTrigger.ATTEMPT_FAILED): IntentStatus.REQUIRES_PAYMENT_METHOD,
    (IntentStatus.SUCCEEDED, IntentTrigger.ATTEMPT_FAILED): IntentStatus.SUCCEEDED,
    (IntentStatus.CANCELED, IntentTrigger.ATTEMPT_FAILED): IntentStatus.CANCELED,
    # The provider asks for a code or redirects the customer: nothing is in flight until they act.
    (IntentStatus.PROCESSING, IntentTrigger.ATTEMPT_WAITS): IntentStatus.REQUIRES_PAYMENT_METHOD,
    (IntentStatus.SUCCEEDED, IntentTrigger.ATTEMPT_WAITS): IntentStatus.SUCCEEDED,
    # A payment counts in any status. On a paid intent it is a duplicate and changes nothing.
    (IntentStatus.REQUIRES_PAYMENT_METHOD, IntentTrigger.PAYMENT_CONFIRMED): IntentStatus.SUCCEEDED,
    (IntentStatus.PROCESSING, IntentTrigger.PAYMENT_CONFIRMED): IntentStatus.SUCCEEDED,
    (IntentStatus.SUCCEEDED, IntentTrigger.PAYMENT_CONFIRMED): IntentStatus.SUCCEEDED,
    (IntentStatus.CANCELED, IntentTrigger.PAYMENT_CONFIRMED): IntentStatus.SUCCEEDED,
    # An intent in processing does not expire until its attempt is settled.
    (IntentStatus.REQUIRES_PAYMENT_METHOD, IntentTrigger.EXPIRE): IntentStatus.CANCELED,
    (IntentStatus.CANCELED, IntentTrigger.EXPIRE): IntentStatus.CANCELED,
}

_EVENT_ON_REACHING = {
    IntentStatus.REQUIRES_PAYMENT_METHOD: EventType.REQUIRES_PAYMENT_METHOD,
    IntentStatus.PROCESSING: EventType.PROCESSING,
    IntentStatus.SUCCEEDED: EventType.SUCCEEDED,
    IntentStatus.CANCELED: EventType.CANCELED,
}


def next_status(status: IntentStatus | None, trigger: IntentTrigger) -> IntentStatus:
    """Return the status after `trigger`, which is the same if nothing changes. Raises TransitionNotAllowedError."""
    try:
        return TRANSITIONS[status, trigger]
    except KeyError:
        raise TransitionNotAllowedError(status, trigger) from None


def may_expire(status: IntentStatus) -> bool:
    """Return whether an intent in this status is canceled when its `expires_at` is reached."""
    return TRANSITIONS.get((status, IntentTrigger.EXPIRE), status) is not status


def event_type_for(before: IntentStatus | None, after: IntentStatus) -> EventType | None:
    """Return the type of the event that records this change, or None if nothing changed."""
    if before is None:
        return EventType.CREATED
    return None if before == after else _EVENT_ON_REACHING[after]


class RecordedEvent(Protocol):
    @property
    def type(self) -> str: ...

    @property
    def wrong_code(self) -> int | None:
        """Which entry of a code it was, if the event followed from a wrong one-time code."""


_Event = TypeVar("_Event", bound=RecordedEvent)


def without_refused_codes(events: Sequence[_Event]) -> list[_Event]:
    """Return the events of one intent, oldest first, without the start of processing before each wrong code.

    A code is sent with the request to charge. The provider refused the code, so nothing was charged.
    """
    return [
        event
        for event, following in zip_longest(events, events[1:])
        if event.type != EventType.PROCESSING or following is None or following.wrong_code is None
    ]
