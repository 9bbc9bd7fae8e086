"""The state machine of a payment attempt: one table, no I/O. ARCHITECTURE.md draws it."""

from datetime import timedelta
from enum import StrEnum

from shared.domain.intents.states import IntentStatus, IntentTrigger


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


class ProviderAnswer(StrEnum):
    """What a provider says of an attempt: to our request, when asked, or in a notification of its own."""

    PAID = "paid"
    DECLINED = "declined"
    NEEDS_CODE = "needs_code"
    NEEDS_REDIRECT = "needs_redirect"
    UNKNOWN = "unknown"
    NOT_FOUND = "not_found"
    """The provider has never heard of it."""


IN_FLIGHT = frozenset({AttemptState.SENT, AttemptState.UNKNOWN})
"""The provider may be charging: its intent is processing, and no other attempt may begin."""

AWAITING_CUSTOMER = frozenset({AttemptState.AWAITING_CODE, AttemptState.AWAITING_REDIRECT})
"""The customer's turn."""

CHARGED = frozenset({AttemptState.PAID, AttemptState.DUPLICATE})

_ENDED = CHARGED | {AttemptState.DECLINED, AttemptState.ABANDONED}


class UnexpectedAnswerError(Exception):
    """A provider gave an answer that makes no sense for the attempt as it is."""

    def __init__(self, state: AttemptState, answer: ProviderAnswer) -> None:
        super().__init__(f"{answer} is no answer to an attempt that is {state}")


# A pair that is missing here makes no sense. A pair that leads to its own state changes nothing.
TRANSITIONS: dict[tuple[AttemptState, ProviderAnswer], AttemptState] = {
    # Money that arrived counts, whatever we thought; the same news again changes nothing.
    **{(state, ProviderAnswer.PAID): AttemptState.PAID for state in AttemptState},
    (AttemptState.DUPLICATE, ProviderAnswer.PAID): AttemptState.DUPLICATE,
    # A late refusal never undoes what has ended; nor does any other late answer.
    **{(state, ProviderAnswer.DECLINED): AttemptState.DECLINED for state in IN_FLIGHT | AWAITING_CUSTOMER},
    **{(state, ProviderAnswer.NOT_FOUND): AttemptState.DECLINED for state in IN_FLIGHT},
    **{
        (state, answer): state
        for state in _ENDED
        for answer in ProviderAnswer
        if answer is not ProviderAnswer.PAID
    },
    # Back to the customer: a first code, another one after a wrong one, or a page of the provider's.
    **{(state, ProviderAnswer.NEEDS_CODE): AttemptState.AWAITING_CODE for state in IN_FLIGHT},
    (AttemptState.AWAITING_CODE, ProviderAnswer.NEEDS_CODE): AttemptState.AWAITING_CODE,
    **{(state, ProviderAnswer.NEEDS_REDIRECT): AttemptState.AWAITING_REDIRECT for state in IN_FLIGHT},
    (AttemptState.AWAITING_REDIRECT, ProviderAnswer.NEEDS_REDIRECT): AttemptState.AWAITING_REDIRECT,
    # Somebody has to ask again. While it is the customer's turn nothing has been charged.
    **{(state, ProviderAnswer.UNKNOWN): AttemptState.UNKNOWN for state in IN_FLIGHT},
    **{
        (state, answer): state
        for state in AWAITING_CUSTOMER
        for answer in (ProviderAnswer.UNKNOWN, ProviderAnswer.NOT_FOUND)
    },
}


def state_after(state: AttemptState, answer: ProviderAnswer, intent: IntentStatus) -> AttemptState:
    """The state after `answer`; the same state when nothing changes. `intent` is how the intent stands before."""
    try:
        after = TRANSITIONS[state, answer]
    except KeyError:
        raise UnexpectedAnswerError(state, answer) from None
    if after is AttemptState.PAID and after is not state and intent is IntentStatus.SUCCEEDED:
        return AttemptState.DUPLICATE
    return after


def intent_trigger(before: AttemptState, after: AttemptState) -> IntentTrigger | None:
    """What this move of an attempt means to its intent; None when nothing."""
    if after in CHARGED:
        return IntentTrigger.PAYMENT_CONFIRMED
    if before not in IN_FLIGHT or after in IN_FLIGHT:
        return None
    return IntentTrigger.ATTEMPT_WAITS if after in AWAITING_CUSTOMER else IntentTrigger.ATTEMPT_FAILED


def abandon_if_unpayable(after: AttemptState, intent: IntentStatus) -> AttemptState:
    """What awaits the customer is abandoned where the intent, by now, can no longer be paid by them."""
    if after in AWAITING_CUSTOMER and intent is not IntentStatus.REQUIRES_PAYMENT_METHOD:
        return AttemptState.ABANDONED
    return after


ANSWER_TIMEOUT = timedelta(seconds=20)
"""How long a request may take to leave, and how long the provider may take to answer; then it is unknown."""

IN_FLIGHT_WINDOW = 2 * ANSWER_TIMEOUT
"""From when it was sent: before that, our request may still be on its way."""

FIRST_INQUIRY_AFTER = ANSWER_TIMEOUT + timedelta(seconds=5)
"""From when it was sent, where nobody said that it is unknown: whoever waited for the answer is gone."""

INQUIRY_INTERVALS_S = (10, 20, 60, 300, 900, 3600)
"""After the first inquiry, the second and so on; the last one for ever, for nobody knows how long it takes."""

_NOT_CHARGED_SO_FAR = frozenset(
    {ProviderAnswer.NOT_FOUND, ProviderAnswer.NEEDS_CODE, ProviderAnswer.NEEDS_REDIRECT}
)


def trusted_answer(
    answer: ProviderAnswer, *, past_in_flight_window: bool, is_first_request: bool
) -> ProviderAnswer:
    """What counts of an answer that may be about an earlier request than the one under way.

    "Not charged" counts once the request must have arrived; and so does "declined" where an earlier request of the
    same attempt may be meant.
    """
    if past_in_flight_window or answer in (ProviderAnswer.PAID, ProviderAnswer.UNKNOWN):
        return answer
    if answer in _NOT_CHARGED_SO_FAR or not is_first_request:
        return ProviderAnswer.UNKNOWN
    return answer
