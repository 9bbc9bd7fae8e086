"""Which page for which state: every pair of them."""

import pytest

from services.checkout.showing import Showing, what_to_show
from shared.domain.attempts.states import AttemptState
from shared.domain.intents.states import State

ATTEMPTS = [None, *AttemptState]


@pytest.mark.parametrize("attempt", ATTEMPTS)
@pytest.mark.parametrize("is_over", [False, True])
@pytest.mark.parametrize("wants_change", [False, True])
@pytest.mark.parametrize(
    ("status", "showing"),
    [
        (State.SUCCEEDED, Showing.PAID),
        (State.PROCESSING, Showing.PROCESSING),
        (State.CANCELED, Showing.EXPIRED),
    ],
)
def test_the_intent_decides_first(
    status: State, showing: Showing, is_over: bool, wants_change: bool, attempt: AttemptState | None
) -> None:
    shown = what_to_show(status, is_over=is_over, attempt=attempt, can_go_on=True, wants_change=wants_change)
    assert shown is showing


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_from_its_time_on_nothing_is_taken(attempt: AttemptState | None) -> None:
    """Whether or not the scheduler has come by."""
    shown = what_to_show(
        State.REQUIRES_PAYMENT_METHOD, is_over=True, attempt=attempt, can_go_on=True, wants_change=True
    )
    assert shown is Showing.EXPIRED


@pytest.mark.parametrize(
    ("attempt", "can_go_on", "wants_change", "showing"),
    [
        (None, False, False, Showing.READY),
        (AttemptState.DECLINED, False, False, Showing.READY),
        (AttemptState.ABANDONED, True, False, Showing.READY),
        (AttemptState.AWAITING_CODE, True, False, Showing.CODE),
        (AttemptState.AWAITING_CODE, True, True, Showing.READY),
        (AttemptState.AWAITING_CODE, False, False, Showing.READY),  # a crash: no code was sent
        (AttemptState.AWAITING_REDIRECT, True, False, Showing.REDIRECT_OPEN),
        (AttemptState.AWAITING_REDIRECT, True, True, Showing.READY),
        (
            AttemptState.AWAITING_REDIRECT,
            False,
            False,
            Showing.READY,
        ),  # a crash: nobody knows the page's address
    ],
)
def test_the_last_attempt_decides_then(
    attempt: AttemptState | None, can_go_on: bool, wants_change: bool, showing: Showing
) -> None:
    shown = what_to_show(
        State.REQUIRES_PAYMENT_METHOD,
        is_over=False,
        attempt=attempt,
        can_go_on=can_go_on,
        wants_change=wants_change,
    )
    assert shown is showing
