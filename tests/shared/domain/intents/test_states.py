"""The state machine of §3, for every pair of state and trigger."""

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

# (state, trigger) → the next state, or None where the transition is not allowed. Every pair is listed.
EXPECTED: dict[tuple[IntentStatus | None, IntentTrigger], IntentStatus | None] = {
    # No intent exists yet: only create is allowed.
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
    # An attempt is in flight: a second one and the expiry wait for it.
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
    # Expired: only a late payment changes it.
    (CANCELED, IntentTrigger.CREATE): CANCELED,
    (CANCELED, IntentTrigger.ATTEMPT_SENT): None,
    (CANCELED, IntentTrigger.ATTEMPT_FAILED): CANCELED,
    (CANCELED, IntentTrigger.ATTEMPT_WAITS): None,
    (CANCELED, IntentTrigger.PAYMENT_CONFIRMED): SUCCEEDED,  # §3: a verified late payment
    (CANCELED, IntentTrigger.EXPIRE): CANCELED,
}


def test_table_above_has_every_pair() -> None:
    """A new state or trigger must be defined for every combination."""
    assert set(EXPECTED) == set(product([None, *IntentStatus], IntentTrigger))


@pytest.mark.parametrize(("state", "trigger"), EXPECTED)
def test_every_pair_of_state_and_trigger(state: IntentStatus | None, trigger: IntentTrigger) -> None:
    """A transition is allowed exactly where §3 and its decisions say so."""
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
def test_each_status_change_has_one_event(
    before: IntentStatus | None, after: IntentStatus, event: EventType | None
) -> None:
    """Without a change there is none. The names are those of §6.2."""
    assert event_type_for(before, after) == event
