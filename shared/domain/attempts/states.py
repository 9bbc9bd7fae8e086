"""The state machine of a payment attempt, as one table. Pure: no I/O. ARCHITECTURE.md draws it."""

from dataclasses import dataclass
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
    """A second payment on an intent that is already paid."""


class ProviderAnswer(StrEnum):
    """What a provider reports about an attempt: in a response, a status inquiry or a notification."""

    PAID = "paid"
    DECLINED = "declined"
    NEEDS_CODE = "needs_code"
    NEEDS_REDIRECT = "needs_redirect"
    UNKNOWN = "unknown"
    NOT_FOUND = "not_found"
    """The provider has no record of the attempt."""


IN_FLIGHT = frozenset({AttemptState.SENT, AttemptState.UNKNOWN})
"""The provider may be charging. The intent is processing, and no other attempt may start."""

AWAITING_CUSTOMER = frozenset({AttemptState.AWAITING_CODE, AttemptState.AWAITING_REDIRECT})
"""Waiting for the customer to enter a code or to pay on the provider's page."""

CHARGED = frozenset({AttemptState.PAID, AttemptState.DUPLICATE})

MAX_CODE_TRIES = 5
"""How many codes the customer may enter for one attempt."""

_ENDED = CHARGED | {AttemptState.DECLINED, AttemptState.ABANDONED}


@dataclass(frozen=True, slots=True)
class AttemptSnapshot:
    """The state of an attempt at one moment: when an operator saw it, or the provider was asked about it."""

    state: AttemptState
    provider_requests: int

    def matches(self, other: "AttemptSnapshot") -> bool:
        """Return whether the attempt is still the same. A change from sent to unknown does not count."""
        is_same_state = other.state is self.state or {other.state, self.state} <= IN_FLIGHT
        return is_same_state and other.provider_requests == self.provider_requests


class UnexpectedAnswerError(Exception):
    """A provider gave an answer that the table does not allow in the attempt's state."""

    def __init__(self, state: AttemptState, answer: ProviderAnswer) -> None:
        super().__init__(f"answer {answer} is not allowed for an attempt in state {state}")


# A missing pair is not allowed. A pair that maps to its own state changes nothing.
TRANSITIONS: dict[tuple[AttemptState, ProviderAnswer], AttemptState] = {
    # A confirmed payment always counts, whatever the state. Reporting it again changes nothing.
    **{(state, ProviderAnswer.PAID): AttemptState.PAID for state in AttemptState},
    (AttemptState.DUPLICATE, ProviderAnswer.PAID): AttemptState.DUPLICATE,
    # A late answer never changes an attempt that has ended.
    **{(state, ProviderAnswer.DECLINED): AttemptState.DECLINED for state in IN_FLIGHT | AWAITING_CUSTOMER},
    **{(state, ProviderAnswer.NOT_FOUND): AttemptState.DECLINED for state in IN_FLIGHT},
    **{
        (state, answer): state
        for state in _ENDED
        for answer in ProviderAnswer
        if answer is not ProviderAnswer.PAID
    },
    # Back to the customer: a first code, another code after a wrong one, or the provider's page.
    **{(state, ProviderAnswer.NEEDS_CODE): AttemptState.AWAITING_CODE for state in IN_FLIGHT},
    (AttemptState.AWAITING_CODE, ProviderAnswer.NEEDS_CODE): AttemptState.AWAITING_CODE,
    **{(state, ProviderAnswer.NEEDS_REDIRECT): AttemptState.AWAITING_REDIRECT for state in IN_FLIGHT},
    (AttemptState.AWAITING_REDIRECT, ProviderAnswer.NEEDS_REDIRECT): AttemptState.AWAITING_REDIRECT,
    # The verifier has to inquire again. While the customer is awaited, nothing has been charged.
    **{(state, ProviderAnswer.UNKNOWN): AttemptState.UNKNOWN for state in IN_FLIGHT},
    **{
        (state, answer): state
        for state in AWAITING_CUSTOMER
        for answer in (ProviderAnswer.UNKNOWN, ProviderAnswer.NOT_FOUND)
    },
}


def state_after(state: AttemptState, answer: ProviderAnswer, intent: IntentStatus) -> AttemptState:
    """Return the state after `answer`, which is the same state if nothing changes.

    `intent` is the status of the intent before the answer. Raises UnexpectedAnswerError if the table has no such pair.
    """
    try:
        after = TRANSITIONS[state, answer]
    except KeyError:
        raise UnexpectedAnswerError(state, answer) from None
    if after is AttemptState.PAID and after is not state and intent is IntentStatus.SUCCEEDED:
        return AttemptState.DUPLICATE
    return after


def intent_trigger(before: AttemptState, after: AttemptState) -> IntentTrigger | None:
    """Return the trigger that this change of an attempt has on its intent, or None if it has none."""
    if after in CHARGED:
        return IntentTrigger.PAYMENT_CONFIRMED
    if before not in IN_FLIGHT or after in IN_FLIGHT:
        return None
    return IntentTrigger.ATTEMPT_WAITS if after in AWAITING_CUSTOMER else IntentTrigger.ATTEMPT_FAILED


def abandon_if_unpayable(after: AttemptState, intent: IntentStatus) -> AttemptState:
    """Return ABANDONED for an attempt that awaits the customer on an intent that can no longer be paid."""
    if after in AWAITING_CUSTOMER and intent is not IntentStatus.REQUIRES_PAYMENT_METHOD:
        return AttemptState.ABANDONED
    return after


ANSWER_TIMEOUT = timedelta(seconds=20)
"""How long a request may wait before it is sent, and how long the provider may take to answer.

After that, the outcome is unknown."""

IN_FLIGHT_WINDOW = 2 * ANSWER_TIMEOUT
"""How long after sending a request may still reach the provider."""

FIRST_INQUIRY_AFTER = ANSWER_TIMEOUT + timedelta(seconds=5)
"""When to inquire first, counted from sending, if the process that waited for the answer is gone."""

_NOT_CHARGED_SO_FAR = frozenset(
    {ProviderAnswer.NOT_FOUND, ProviderAnswer.NEEDS_CODE, ProviderAnswer.NEEDS_REDIRECT}
)


def trusted_answer(
    answer: ProviderAnswer, *, past_in_flight_window: bool, is_first_request: bool
) -> ProviderAnswer:
    """Return the answer to act on, for an answer that may be about an earlier request than the one in flight.

    "Not charged" counts only after the in-flight window. So does "declined", if the attempt had an earlier request
    that the provider may mean. Otherwise the outcome stays unknown.
    """
    if past_in_flight_window or answer in (ProviderAnswer.PAID, ProviderAnswer.UNKNOWN):
        return answer
    if answer in _NOT_CHARGED_SO_FAR or not is_first_request:
        return ProviderAnswer.UNKNOWN
    return answer
