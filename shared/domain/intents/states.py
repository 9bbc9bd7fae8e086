"""The state machine of a payment intent: one table, no I/O. ARCHITECTURE.md draws it."""

from enum import StrEnum


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
    """This trigger has no business in this state; whoever pulled it must look at the intent again."""

    def __init__(self, state: IntentStatus | None, trigger: IntentTrigger) -> None:
        self.state = state
        self.trigger = trigger
        super().__init__(f"{trigger} is not allowed from {state or 'nothing'}")


# A pair that is missing here is not allowed. A pair that leads to its own state changes nothing.
TRANSITIONS: dict[tuple[IntentStatus | None, IntentTrigger], IntentStatus] = {
    (None, IntentTrigger.CREATE): IntentStatus.REQUIRES_PAYMENT_METHOD,
    # A repeated create finds the intent as it is, whatever its state (§4.1 rule 2).
    (IntentStatus.REQUIRES_PAYMENT_METHOD, IntentTrigger.CREATE): IntentStatus.REQUIRES_PAYMENT_METHOD,
    (IntentStatus.PROCESSING, IntentTrigger.CREATE): IntentStatus.PROCESSING,
    (IntentStatus.SUCCEEDED, IntentTrigger.CREATE): IntentStatus.SUCCEEDED,
    (IntentStatus.CANCELED, IntentTrigger.CREATE): IntentStatus.CANCELED,
    # One attempt at a time, and none once the intent is paid or expired.
    (IntentStatus.REQUIRES_PAYMENT_METHOD, IntentTrigger.ATTEMPT_SENT): IntentStatus.PROCESSING,
    # A wallet can refuse before anything was sent; a late refusal never undoes what is final.
    (
        IntentStatus.REQUIRES_PAYMENT_METHOD,
        IntentTrigger.ATTEMPT_FAILED,
    ): IntentStatus.REQUIRES_PAYMENT_METHOD,
    (IntentStatus.PROCESSING, IntentTrigger.ATTEMPT_FAILED): IntentStatus.REQUIRES_PAYMENT_METHOD,
    (IntentStatus.SUCCEEDED, IntentTrigger.ATTEMPT_FAILED): IntentStatus.SUCCEEDED,
    (IntentStatus.CANCELED, IntentTrigger.ATTEMPT_FAILED): IntentStatus.CANCELED,
    # The provider asks the customer for a code or sends them elsewhere: nothing is under way until they answer.
    (IntentStatus.PROCESSING, IntentTrigger.ATTEMPT_WAITS): IntentStatus.REQUIRES_PAYMENT_METHOD,
    (IntentStatus.SUCCEEDED, IntentTrigger.ATTEMPT_WAITS): IntentStatus.SUCCEEDED,
    # Money that arrived counts from any state; on a paid intent it is a duplicate and changes nothing.
    (IntentStatus.REQUIRES_PAYMENT_METHOD, IntentTrigger.PAYMENT_CONFIRMED): IntentStatus.SUCCEEDED,
    (IntentStatus.PROCESSING, IntentTrigger.PAYMENT_CONFIRMED): IntentStatus.SUCCEEDED,
    (IntentStatus.SUCCEEDED, IntentTrigger.PAYMENT_CONFIRMED): IntentStatus.SUCCEEDED,
    (IntentStatus.CANCELED, IntentTrigger.PAYMENT_CONFIRMED): IntentStatus.SUCCEEDED,
    # An intent in processing waits until its attempt is settled.
    (IntentStatus.REQUIRES_PAYMENT_METHOD, IntentTrigger.EXPIRE): IntentStatus.CANCELED,
    (IntentStatus.CANCELED, IntentTrigger.EXPIRE): IntentStatus.CANCELED,
}

_EVENT_ON_REACHING = {
    IntentStatus.REQUIRES_PAYMENT_METHOD: EventType.REQUIRES_PAYMENT_METHOD,
    IntentStatus.PROCESSING: EventType.PROCESSING,
    IntentStatus.SUCCEEDED: EventType.SUCCEEDED,
    IntentStatus.CANCELED: EventType.CANCELED,
}


def next_status(state: IntentStatus | None, trigger: IntentTrigger) -> IntentStatus:
    """The state after `trigger`; the same state when nothing changes."""
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise TransitionNotAllowedError(state, trigger) from None


def event_type_for(before: IntentStatus | None, after: IntentStatus) -> EventType | None:
    """The event that a change is written down as; None when there was no change."""
    if before is None:
        return EventType.CREATED
    return None if before == after else _EVENT_ON_REACHING[after]
