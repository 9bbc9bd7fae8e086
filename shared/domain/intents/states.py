"""The state machine of a payment intent: one table, no I/O. ARCHITECTURE.md draws it."""

from enum import StrEnum


class State(StrEnum):
    REQUIRES_PAYMENT_METHOD = "requires_payment_method"
    PROCESSING = "processing"
    SUCCEEDED = "succeeded"
    CANCELED = "canceled"


class Trigger(StrEnum):
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


class MoveNotAllowedError(Exception):
    """This trigger has no business in this state; whoever pulled it must look at the intent again."""

    def __init__(self, state: State | None, trigger: Trigger) -> None:
        self.state = state
        self.trigger = trigger
        super().__init__(f"{trigger} is not allowed from {state or 'nothing'}")


# A pair that is missing here is not allowed. A pair that leads to its own state changes nothing.
TRANSITIONS: dict[tuple[State | None, Trigger], State] = {
    (None, Trigger.CREATE): State.REQUIRES_PAYMENT_METHOD,
    # A repeated create finds the intent as it is, whatever its state (§4.1 rule 2).
    (State.REQUIRES_PAYMENT_METHOD, Trigger.CREATE): State.REQUIRES_PAYMENT_METHOD,
    (State.PROCESSING, Trigger.CREATE): State.PROCESSING,
    (State.SUCCEEDED, Trigger.CREATE): State.SUCCEEDED,
    (State.CANCELED, Trigger.CREATE): State.CANCELED,
    # One attempt at a time, and none once the intent is paid or expired.
    (State.REQUIRES_PAYMENT_METHOD, Trigger.ATTEMPT_SENT): State.PROCESSING,
    # A wallet can refuse before anything was sent; a late refusal never undoes what is final.
    (State.REQUIRES_PAYMENT_METHOD, Trigger.ATTEMPT_FAILED): State.REQUIRES_PAYMENT_METHOD,
    (State.PROCESSING, Trigger.ATTEMPT_FAILED): State.REQUIRES_PAYMENT_METHOD,
    (State.SUCCEEDED, Trigger.ATTEMPT_FAILED): State.SUCCEEDED,
    (State.CANCELED, Trigger.ATTEMPT_FAILED): State.CANCELED,
    # The provider asks the customer for a code or sends them elsewhere: nothing is under way until they answer.
    (State.PROCESSING, Trigger.ATTEMPT_WAITS): State.REQUIRES_PAYMENT_METHOD,
    (State.SUCCEEDED, Trigger.ATTEMPT_WAITS): State.SUCCEEDED,
    # Money that arrived counts from any state; on a paid intent it is a duplicate and changes nothing.
    (State.REQUIRES_PAYMENT_METHOD, Trigger.PAYMENT_CONFIRMED): State.SUCCEEDED,
    (State.PROCESSING, Trigger.PAYMENT_CONFIRMED): State.SUCCEEDED,
    (State.SUCCEEDED, Trigger.PAYMENT_CONFIRMED): State.SUCCEEDED,
    (State.CANCELED, Trigger.PAYMENT_CONFIRMED): State.SUCCEEDED,
    # An intent in processing waits until its attempt is settled.
    (State.REQUIRES_PAYMENT_METHOD, Trigger.EXPIRE): State.CANCELED,
    (State.CANCELED, Trigger.EXPIRE): State.CANCELED,
}

_EVENT_ON_REACHING = {
    State.REQUIRES_PAYMENT_METHOD: EventType.REQUIRES_PAYMENT_METHOD,
    State.PROCESSING: EventType.PROCESSING,
    State.SUCCEEDED: EventType.SUCCEEDED,
    State.CANCELED: EventType.CANCELED,
}


def move(state: State | None, trigger: Trigger) -> State:
    """The state after `trigger`; the same state when nothing changes."""
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise MoveNotAllowedError(state, trigger) from None


def event_of(before: State | None, after: State) -> EventType | None:
    """The event that a change is written down as; None when there was no change."""
    if before is None:
        return EventType.CREATED
    return None if before == after else _EVENT_ON_REACHING[after]
