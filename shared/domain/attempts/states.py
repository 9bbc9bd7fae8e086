"""The state machine of a payment attempt: one table, no I/O. ARCHITECTURE.md draws it."""

from datetime import timedelta
from enum import StrEnum

from shared.domain.intents.states import State, Trigger


class AttemptState(StrEnum):
    AWAITING_CODE = "awaiting_code"
    AWAITING_REDIRECT = "awaiting_redirect"
    SENT = "sent"
    UNKNOWN = "unknown"
    PAID = "paid"
    DECLINED = "declined"
    ABANDONED = "abandoned"
    DUPLICATE = "duplicate"
    """Paid too, on an intent that was paid already."""


class Answer(StrEnum):
    """What a provider says of an attempt: to our request, when asked, or in a notification of its own."""

    PAID = "paid"
    DECLINED = "declined"
    NEEDS_CODE = "needs_code"
    NEEDS_REDIRECT = "needs_redirect"
    UNKNOWN = "unknown"
    NOT_FOUND = "not_found"
    """The provider has never heard of it."""


UNDER_WAY = frozenset({AttemptState.SENT, AttemptState.UNKNOWN})
"""The provider may be charging: its intent is processing, and no other attempt may begin."""

AWAITING = frozenset({AttemptState.AWAITING_CODE, AttemptState.AWAITING_REDIRECT})
"""The customer's turn."""

CHARGED = frozenset({AttemptState.PAID, AttemptState.DUPLICATE})

_ENDED = CHARGED | {AttemptState.DECLINED, AttemptState.ABANDONED}


class AnswerOutOfPlaceError(Exception):
    """A provider gave an answer that makes no sense for the attempt as it is."""

    def __init__(self, state: AttemptState, answer: Answer) -> None:
        super().__init__(f"{answer} is no answer to an attempt that is {state}")


# A pair that is missing here makes no sense. A pair that leads to its own state changes nothing.
ANSWERED: dict[tuple[AttemptState, Answer], AttemptState] = {
    # Money that arrived counts, whatever we thought; the same news again changes nothing.
    **{(state, Answer.PAID): AttemptState.PAID for state in AttemptState},
    (AttemptState.DUPLICATE, Answer.PAID): AttemptState.DUPLICATE,
    # A late refusal never undoes what has ended; nor does any other late answer.
    **{(state, Answer.DECLINED): AttemptState.DECLINED for state in UNDER_WAY | AWAITING},
    **{(state, Answer.NOT_FOUND): AttemptState.DECLINED for state in UNDER_WAY},
    **{(state, answer): state for state in _ENDED for answer in Answer if answer is not Answer.PAID},
    # Back to the customer: a first code, another one after a wrong one, or a page of the provider's.
    **{(state, Answer.NEEDS_CODE): AttemptState.AWAITING_CODE for state in UNDER_WAY},
    (AttemptState.AWAITING_CODE, Answer.NEEDS_CODE): AttemptState.AWAITING_CODE,
    **{(state, Answer.NEEDS_REDIRECT): AttemptState.AWAITING_REDIRECT for state in UNDER_WAY},
    (AttemptState.AWAITING_REDIRECT, Answer.NEEDS_REDIRECT): AttemptState.AWAITING_REDIRECT,
    # Somebody has to ask again. While it is the customer's turn nothing has been charged.
    **{(state, Answer.UNKNOWN): AttemptState.UNKNOWN for state in UNDER_WAY},
    **{(state, answer): state for state in AWAITING for answer in (Answer.UNKNOWN, Answer.NOT_FOUND)},
}


def answered(state: AttemptState, answer: Answer, intent: State) -> AttemptState:
    """The state after `answer`; the same state when nothing changes. `intent` is how the intent stands before."""
    try:
        after = ANSWERED[state, answer]
    except KeyError:
        raise AnswerOutOfPlaceError(state, answer) from None
    if after is AttemptState.PAID and after is not state and intent is State.SUCCEEDED:
        return AttemptState.DUPLICATE
    return after


def trigger_of(before: AttemptState, after: AttemptState) -> Trigger | None:
    """What this move of an attempt means to its intent; None when nothing."""
    if after in CHARGED:
        return Trigger.PAYMENT_CONFIRMED
    if before not in UNDER_WAY or after in UNDER_WAY:
        return None
    return Trigger.ATTEMPT_WAITS if after in AWAITING else Trigger.ATTEMPT_FAILED


def still_of_use(after: AttemptState, intent: State) -> AttemptState:
    """What awaits the customer is abandoned where the intent, by now, can no longer be paid by them."""
    if after in AWAITING and intent is not State.REQUIRES_PAYMENT_METHOD:
        return AttemptState.ABANDONED
    return after


ANSWER_LIMIT = timedelta(seconds=20)
"""How long a request may take to leave, and how long the provider may take to answer; then it is unknown."""

SURELY_ARRIVED_AFTER = 2 * ANSWER_LIMIT
"""From when it was sent: before that, our request may still be on its way."""

FIRST_ASKED_AFTER = ANSWER_LIMIT + timedelta(seconds=5)
"""From when it was sent, where nobody said that it is unknown: whoever waited for the answer is gone."""

ASK_AGAIN_AFTER_S = (10, 20, 60, 300, 900, 3600)
"""After the first question, the second and so on; the last one for ever, for nobody knows how long it takes."""

_NOT_CHARGED_SO_FAR = frozenset({Answer.NOT_FOUND, Answer.NEEDS_CODE, Answer.NEEDS_REDIRECT})


def believed(answer: Answer, *, surely_arrived: bool, first_request: bool) -> Answer:
    """What counts of an answer that may be about an earlier request than the one under way.

    "Not charged" counts once the request must have arrived; and so does "declined" where an earlier request of the
    same attempt may be meant.
    """
    if surely_arrived or answer in (Answer.PAID, Answer.UNKNOWN):
        return answer
    if answer in _NOT_CHARGED_SO_FAR or not first_request:
        return Answer.UNKNOWN
    return answer
