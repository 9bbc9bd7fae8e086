"""The state machine of §3, pair by pair."""

from itertools import product

import pytest

from shared.domain.intents.states import (
    EventType,
    IntentStatus,
    IntentTrigger,
    TransitionNotAllowedError,
    event_type_for,
    next_status,
)

RPM, PROCESSING, SUCCEEDED, CANCELED = IntentStatus

# (state, trigger) → the state after it, or None where the move is not allowed. Every pair is here.
EXPECTED: dict[tuple[IntentStatus | None, IntentTrigger], IntentStatus | None] = {
    # Nothing exists yet: only a create is possible.
    (None, IntentTrigger.CREATE): RPM,
    (None, IntentTrigger.ATTEMPT_SENT): None,
    (None, IntentTrigger.ATTEMPT_FAILED): None,
    (None, IntentTrigger.ATTEMPT_WAITS): None,
    (None, IntentTrigger.PAYMENT_CONFIRMED): None,
    (None, IntentTrigger.EXPIRE): None,
    # Waiting for the customer.
    (RPM, IntentTrigger.CREATE): RPM,  # §4.1 rule 2
    (RPM, IntentTrigger.ATTEMPT_SENT): PROCESSING,
    (RPM, IntentTrigger.ATTEMPT_FAILED): RPM,  # §3: a failed attempt leads back here
    (RPM, IntentTrigger.ATTEMPT_WAITS): None,
    (RPM, IntentTrigger.PAYMENT_CONFIRMED): SUCCEEDED,
    (RPM, IntentTrigger.EXPIRE): CANCELED,
    # An attempt is under way: a second one and the expiry wait for it.
    (PROCESSING, IntentTrigger.CREATE): PROCESSING,
    (PROCESSING, IntentTrigger.ATTEMPT_SENT): None,
    (PROCESSING, IntentTrigger.ATTEMPT_FAILED): RPM,
    (PROCESSING, IntentTrigger.ATTEMPT_WAITS): RPM,
    (PROCESSING, IntentTrigger.PAYMENT_CONFIRMED): SUCCEEDED,
    (PROCESSING, IntentTrigger.EXPIRE): None,
    # Paid is final (§1).
    (SUCCEEDED, IntentTrigger.CREATE): SUCCEEDED,
    (SUCCEEDED, IntentTrigger.ATTEMPT_SENT): None,
    (SUCCEEDED, IntentTrigger.ATTEMPT_FAILED): SUCCEEDED,
    (SUCCEEDED, IntentTrigger.ATTEMPT_WAITS): SUCCEEDED,
    (SUCCEEDED, IntentTrigger.PAYMENT_CONFIRMED): SUCCEEDED,  # a duplicate payment
    (SUCCEEDED, IntentTrigger.EXPIRE): None,
    # Expired: only money that arrived after all changes it.
    (CANCELED, IntentTrigger.CREATE): CANCELED,
    (CANCELED, IntentTrigger.ATTEMPT_SENT): None,
    (CANCELED, IntentTrigger.ATTEMPT_FAILED): CANCELED,
    (CANCELED, IntentTrigger.ATTEMPT_WAITS): None,
    (CANCELED, IntentTrigger.PAYMENT_CONFIRMED): SUCCEEDED,  # §3: a verified late payment
    (CANCELED, IntentTrigger.EXPIRE): CANCELED,
}


def test_the_table_above_misses_no_pair() -> None:
    """Whoever adds a state or a trigger must say what it does everywhere."""
    assert set(EXPECTED) == set(product([None, *IntentStatus], IntentTrigger))


@pytest.mark.parametrize(("state", "trigger"), EXPECTED)
def test_every_pair(state: IntentStatus | None, trigger: IntentTrigger) -> None:
    """A move is allowed exactly where §3 and its decisions say so."""
    expected = EXPECTED[state, trigger]
    if expected is None:
        with pytest.raises(TransitionNotAllowedError):
            next_status(state, trigger)
    else:
        assert next_status(state, trigger) == expected


@pytest.mark.parametrize(
    ("before", "after", "event"),
    [
        (None, RPM, EventType.CREATED),
        (RPM, RPM, None),
        (RPM, PROCESSING, EventType.PROCESSING),
        (PROCESSING, RPM, EventType.REQUIRES_PAYMENT_METHOD),
        (PROCESSING, SUCCEEDED, EventType.SUCCEEDED),
        (CANCELED, SUCCEEDED, EventType.SUCCEEDED),
        (SUCCEEDED, SUCCEEDED, None),
        (RPM, CANCELED, EventType.CANCELED),
    ],
)
def test_each_change_has_one_event_and_no_change_has_none(
    before: IntentStatus | None, after: IntentStatus, event: EventType | None
) -> None:
    """The events that §6.2 sends are named as there."""
    assert event_type_for(before, after) == event
