"""The state machine of an attempt, pair by pair."""

from itertools import product

import pytest

from shared.attempts.states import Answer, AnswerOutOfPlaceError, AttemptState, answered, trigger_of
from shared.attempts.verification import believed
from shared.intents.states import Trigger

CODE, REDIRECT, SENT, UNKNOWN, PAID, DECLINED, ABANDONED, DUPLICATE = AttemptState

# For each state: what it becomes when the provider says paid, declined, needs a code, needs a redirect, unknown,
# not found. None where that answer makes no sense.
EXPECTED: dict[AttemptState, tuple[AttemptState | None, ...]] = {
    CODE: (PAID, DECLINED, CODE, None, CODE, None),
    REDIRECT: (PAID, DECLINED, None, REDIRECT, REDIRECT, None),
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
            answered(state, answer)
    else:
        assert answered(state, answer) is expected


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


@pytest.mark.parametrize("answer", Answer)
def test_not_charged_counts_only_once_the_request_must_have_arrived(answer: Answer) -> None:
    """A provider that has not heard of a request yet may hear of it in a moment, and charge."""
    assert believed(answer, surely_arrived=True) is answer
    early = believed(answer, surely_arrived=False)
    if answer in (Answer.PAID, Answer.DECLINED, Answer.UNKNOWN):
        assert early is answer
    else:
        assert early is Answer.UNKNOWN
