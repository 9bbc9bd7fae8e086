"""The state machine of an attempt, for every pair of state and answer."""

from itertools import product

import pytest

from shared.domain.attempts.states import (
    AttemptState,
    ProviderAnswer,
    UnexpectedAnswerError,
    abandon_if_unpayable,
    intent_trigger,
    state_after,
    trusted_answer,
)
from shared.domain.intents.states import IntentStatus, IntentTrigger

CODE, REDIRECT, SENT, UNKNOWN, PAID, DECLINED, ABANDONED, DUPLICATE = AttemptState

# For each state: the next state for the answers paid, declined, needs a code, needs a redirect, unknown,
# not found. None where the answer is invalid.
EXPECTED: dict[AttemptState, tuple[AttemptState | None, ...]] = {
    CODE: (PAID, DECLINED, CODE, None, CODE, CODE),
    REDIRECT: (PAID, DECLINED, None, REDIRECT, REDIRECT, REDIRECT),
    # The provider has been asked to charge.
    SENT: (PAID, DECLINED, CODE, REDIRECT, UNKNOWN, DECLINED),
    UNKNOWN: (PAID, DECLINED, CODE, REDIRECT, UNKNOWN, DECLINED),
    # It has ended: only a late payment can change that.
    PAID: (PAID, PAID, PAID, PAID, PAID, PAID),
    DECLINED: (PAID, DECLINED, DECLINED, DECLINED, DECLINED, DECLINED),
    ABANDONED: (PAID, ABANDONED, ABANDONED, ABANDONED, ABANDONED, ABANDONED),
    DUPLICATE: (DUPLICATE, DUPLICATE, DUPLICATE, DUPLICATE, DUPLICATE, DUPLICATE),
}


@pytest.mark.parametrize(("state", "answer"), list(product(AttemptState, ProviderAnswer)))
def test_every_pair_of_state_and_answer(state: AttemptState, answer: ProviderAnswer) -> None:
    """A new state or answer has no row above and fails here."""
    expected = EXPECTED[state][list(ProviderAnswer).index(answer)]
    if expected is None:
        with pytest.raises(UnexpectedAnswerError):
            state_after(state, answer, IntentStatus.PROCESSING)
    else:
        assert state_after(state, answer, IntentStatus.PROCESSING) is expected


@pytest.mark.parametrize(
    ("before", "after", "trigger"),
    [
        (SENT, PAID, IntentTrigger.PAYMENT_CONFIRMED),
        (ABANDONED, DUPLICATE, IntentTrigger.PAYMENT_CONFIRMED),
        (SENT, DECLINED, IntentTrigger.ATTEMPT_FAILED),
        (UNKNOWN, DECLINED, IntentTrigger.ATTEMPT_FAILED),
        (SENT, CODE, IntentTrigger.ATTEMPT_WAITS),
        (UNKNOWN, REDIRECT, IntentTrigger.ATTEMPT_WAITS),
        (SENT, UNKNOWN, None),  # still processing
        (CODE, DECLINED, None),  # the intent was not processing
        (REDIRECT, DECLINED, None),
    ],
)
def test_attempt_transition_has_the_expected_trigger_on_its_intent(
    before: AttemptState, after: AttemptState, trigger: IntentTrigger | None
) -> None:
    """Only an attempt in flight can take its intent out of processing."""
    assert intent_trigger(before, after) is trigger


@pytest.mark.parametrize("state", AttemptState)
def test_payment_of_a_paid_intent_is_a_duplicate(state: AttemptState) -> None:
    """Unless it is the attempt that already paid it."""
    expected = PAID if state is PAID else DUPLICATE
    assert state_after(state, ProviderAnswer.PAID, IntentStatus.SUCCEEDED) is expected


@pytest.mark.parametrize("intent", IntentStatus)
@pytest.mark.parametrize("state", AttemptState)
def test_attempt_awaiting_the_customer_is_abandoned_if_the_intent_is_unpayable(
    state: AttemptState, intent: IntentStatus
) -> None:
    """All other states stay."""
    awaits_in_vain = state in (CODE, REDIRECT) and intent is not IntentStatus.REQUIRES_PAYMENT_METHOD
    assert abandon_if_unpayable(state, intent) is (ABANDONED if awaits_in_vain else state)


# The trusted part of an early answer: to the first request of an attempt, and to a later one.
EARLY: dict[ProviderAnswer, tuple[ProviderAnswer, ProviderAnswer]] = {
    ProviderAnswer.PAID: (ProviderAnswer.PAID, ProviderAnswer.PAID),
    ProviderAnswer.DECLINED: (
        ProviderAnswer.DECLINED,
        ProviderAnswer.UNKNOWN,
    ),  # it may be the outcome of the previous request
    ProviderAnswer.NEEDS_CODE: (ProviderAnswer.UNKNOWN, ProviderAnswer.UNKNOWN),
    ProviderAnswer.NEEDS_REDIRECT: (ProviderAnswer.UNKNOWN, ProviderAnswer.UNKNOWN),
    ProviderAnswer.UNKNOWN: (ProviderAnswer.UNKNOWN, ProviderAnswer.UNKNOWN),
    ProviderAnswer.NOT_FOUND: (ProviderAnswer.UNKNOWN, ProviderAnswer.UNKNOWN),
}


@pytest.mark.parametrize("answer", ProviderAnswer)
def test_only_certain_answers_are_trusted_within_the_in_flight_window(answer: ProviderAnswer) -> None:
    """A provider that does not know a request yet may still receive it, and charge."""
    for first in (True, False):
        assert trusted_answer(answer, past_in_flight_window=True, is_first_request=first) is answer
    early = tuple(
        trusted_answer(answer, past_in_flight_window=False, is_first_request=first) for first in (True, False)
    )
    assert early == EARLY[answer]
