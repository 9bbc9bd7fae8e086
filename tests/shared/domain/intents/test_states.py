"""The state machine of §3, pair by pair."""

from itertools import product

import pytest

from shared.domain.intents.states import EventType, MoveNotAllowedError, State, Trigger, event_of, move

RPM, PROCESSING, SUCCEEDED, CANCELED = State

# (state, trigger) → the state after it, or None where the move is not allowed. Every pair is here.
EXPECTED: dict[tuple[State | None, Trigger], State | None] = {
    # Nothing exists yet: only a create is possible.
    (None, Trigger.CREATE): RPM,
    (None, Trigger.ATTEMPT_SENT): None,
    (None, Trigger.ATTEMPT_FAILED): None,
    (None, Trigger.ATTEMPT_WAITS): None,
    (None, Trigger.PAYMENT_CONFIRMED): None,
    (None, Trigger.EXPIRE): None,
    # Waiting for the customer.
    (RPM, Trigger.CREATE): RPM,  # §4.1 rule 2
    (RPM, Trigger.ATTEMPT_SENT): PROCESSING,
    (RPM, Trigger.ATTEMPT_FAILED): RPM,  # §3: a failed attempt leads back here
    (RPM, Trigger.ATTEMPT_WAITS): None,
    (RPM, Trigger.PAYMENT_CONFIRMED): SUCCEEDED,
    (RPM, Trigger.EXPIRE): CANCELED,
    # An attempt is under way: a second one and the expiry wait for it.
    (PROCESSING, Trigger.CREATE): PROCESSING,
    (PROCESSING, Trigger.ATTEMPT_SENT): None,
    (PROCESSING, Trigger.ATTEMPT_FAILED): RPM,
    (PROCESSING, Trigger.ATTEMPT_WAITS): RPM,
    (PROCESSING, Trigger.PAYMENT_CONFIRMED): SUCCEEDED,
    (PROCESSING, Trigger.EXPIRE): None,
    # Paid is final (§1).
    (SUCCEEDED, Trigger.CREATE): SUCCEEDED,
    (SUCCEEDED, Trigger.ATTEMPT_SENT): None,
    (SUCCEEDED, Trigger.ATTEMPT_FAILED): SUCCEEDED,
    (SUCCEEDED, Trigger.ATTEMPT_WAITS): SUCCEEDED,
    (SUCCEEDED, Trigger.PAYMENT_CONFIRMED): SUCCEEDED,  # a duplicate payment
    (SUCCEEDED, Trigger.EXPIRE): None,
    # Expired: only money that arrived after all changes it.
    (CANCELED, Trigger.CREATE): CANCELED,
    (CANCELED, Trigger.ATTEMPT_SENT): None,
    (CANCELED, Trigger.ATTEMPT_FAILED): CANCELED,
    (CANCELED, Trigger.ATTEMPT_WAITS): None,
    (CANCELED, Trigger.PAYMENT_CONFIRMED): SUCCEEDED,  # §3: a verified late payment
    (CANCELED, Trigger.EXPIRE): CANCELED,
}


def test_the_table_above_misses_no_pair() -> None:
    """Whoever adds a state or a trigger must say what it does everywhere."""
    assert set(EXPECTED) == set(product([None, *State], Trigger))


@pytest.mark.parametrize(("state", "trigger"), EXPECTED)
def test_every_pair(state: State | None, trigger: Trigger) -> None:
    """A move is allowed exactly where §3 and its decisions say so."""
    expected = EXPECTED[state, trigger]
    if expected is None:
        with pytest.raises(MoveNotAllowedError):
            move(state, trigger)
    else:
        assert move(state, trigger) == expected


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
    before: State | None, after: State, event: EventType | None
) -> None:
    """The events that §6.2 sends are named as there."""
    assert event_of(before, after) == event
