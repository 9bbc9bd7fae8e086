"""The state machine of an attempt, pair by pair."""

from itertools import product

import pytest

from shared.domain.attempts.states import (
    Answer,
    AnswerOutOfPlaceError,
    AttemptState,
    answered,
    believed,
    still_of_use,
    trigger_of,
)
from shared.domain.intents.states import State, Trigger

CODE, REDIRECT, SENT, UNKNOWN, PAID, DECLINED, ABANDONED, DUPLICATE = AttemptState

# For each state: what it becomes when the provider says paid, declined, needs a code, needs a redirect, unknown,
# not found. None where that answer makes no sense.
EXPECTED: dict[AttemptState, tuple[AttemptState | None, ...]] = {
    CODE: (PAID, DECLINED, CODE, None, CODE, CODE),
    REDIRECT: (PAID, DECLINED, None, REDIRECT, REDIRECT, REDIRECT),
    # The provider has been asked to charge.
    SENT: (PAID, DECLINED, CODE, REDIRECT, UNKNOWN, DECLINED),
    UNKNOWN: (PAID, DECLINED, CODE, REDIRECT, UNKNOWN, DECLINED),
    # It has ended: only money that arrives after all can change that.
    PAID: (PAID, PAID, PAID, PAID, PAID, PAID),
    DECLINED: (PAID, DECLINED, DECLINED, DECLINED, DECLINED, DECLINED),
    ABANDONED: (PAID, ABANDONED, ABANDONED, ABANDONED, ABANDONED, ABANDONED),
    DUPLICATE: (DUPLICATE, DUPLICATE, DUPLICATE, DUPLICATE, DUPLICATE, DUPLICATE),
}


@pytest.mark.parametrize(("state", "answer"), list(product(AttemptState, Answer)))
def test_every_pair(state: AttemptState, answer: Answer) -> None:
    """A new state or answer has no row above, and fails here."""
    expected = EXPECTED[state][list(Answer).index(answer)]
    if expected is None:
        with pytest.raises(AnswerOutOfPlaceError):
            answered(state, answer, State.PROCESSING)
    else:
        assert answered(state, answer, State.PROCESSING) is expected


@pytest.mark.parametrize(
    ("before", "after", "trigger"),
    [
        (SENT, PAID, Trigger.PAYMENT_CONFIRMED),
        (ABANDONED, DUPLICATE, Trigger.PAYMENT_CONFIRMED),
        (SENT, DECLINED, Trigger.ATTEMPT_FAILED),
        (UNKNOWN, DECLINED, Trigger.ATTEMPT_FAILED),
        (SENT, CODE, Trigger.ATTEMPT_WAITS),
        (UNKNOWN, REDIRECT, Trigger.ATTEMPT_WAITS),
        (SENT, UNKNOWN, None),  # still processing
        (CODE, DECLINED, None),  # its intent was not processing
        (REDIRECT, DECLINED, None),
    ],
)
def test_what_a_move_means_to_the_intent(
    before: AttemptState, after: AttemptState, trigger: Trigger | None
) -> None:
    """Only an attempt that was under way can take its intent out of processing."""
    assert trigger_of(before, after) is trigger


@pytest.mark.parametrize("state", AttemptState)
def test_money_on_a_paid_intent_is_a_duplicate(state: AttemptState) -> None:
    """Unless it is the very attempt that paid."""
    expected = PAID if state is PAID else DUPLICATE
    assert answered(state, Answer.PAID, State.SUCCEEDED) is expected


@pytest.mark.parametrize("intent", State)
@pytest.mark.parametrize("state", AttemptState)
def test_nobody_is_kept_waiting_for_nothing(state: AttemptState, intent: State) -> None:
    """What awaits the customer is abandoned where the intent cannot be paid any more."""
    awaits_in_vain = state in (CODE, REDIRECT) and intent is not State.REQUIRES_PAYMENT_METHOD
    assert still_of_use(state, intent) is (ABANDONED if awaits_in_vain else state)


# What is believed of an answer that came early: to the first request of an attempt, and to a later one.
EARLY: dict[Answer, tuple[Answer, Answer]] = {
    Answer.PAID: (Answer.PAID, Answer.PAID),
    Answer.DECLINED: (Answer.DECLINED, Answer.UNKNOWN),  # it may be what became of the request before
    Answer.NEEDS_CODE: (Answer.UNKNOWN, Answer.UNKNOWN),
    Answer.NEEDS_REDIRECT: (Answer.UNKNOWN, Answer.UNKNOWN),
    Answer.UNKNOWN: (Answer.UNKNOWN, Answer.UNKNOWN),
    Answer.NOT_FOUND: (Answer.UNKNOWN, Answer.UNKNOWN),
}


@pytest.mark.parametrize("answer", Answer)
def test_how_much_of_an_answer_is_believed(answer: Answer) -> None:
    """A provider that has not heard of a request yet may hear of it in a moment, and charge."""
    for first in (True, False):
        assert believed(answer, surely_arrived=True, first_request=first) is answer
    early = tuple(believed(answer, surely_arrived=False, first_request=first) for first in (True, False))
    assert early == EARLY[answer]
