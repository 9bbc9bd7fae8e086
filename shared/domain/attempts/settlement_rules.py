"""Rules for settling an attempt: which reported answer counts, and what it changes. Pure.

`settlement` reads and writes the rows. The exhaustive model (tests/shared/domain/attempts) explores these functions.
"""

from dataclasses import dataclass
from datetime import datetime

from shared.domain.attempts.states import (
    CHARGED,
    IN_FLIGHT,
    IN_FLIGHT_WINDOW,
    AttemptSnapshot,
    AttemptState,
    ProviderAnswer,
    intent_trigger,
    state_after,
    trusted_answer,
)
from shared.domain.intents.states import IntentStatus, IntentTrigger


@dataclass(frozen=True, slots=True)
class AttemptChange:
    """What an answer changes: the attempt's state, and the trigger that this has on its intent."""

    state: AttemptState
    trigger: IntentTrigger | None


def is_superseded(current: AttemptSnapshot, number: int, answer: ProviderAnswer) -> bool:
    """Return whether the answer is about an earlier request than the last one. A payment always counts."""
    return current.provider_requests != number and answer is not ProviderAnswer.PAID


def answer_in_response(
    current: AttemptSnapshot, number: int, answer: ProviderAnswer
) -> ProviderAnswer | None:
    """Return the answer to act on, for the response to request `number`; None if it is superseded."""
    return None if is_superseded(current, number, answer) else answer


def answer_to_inquiry(
    current: AttemptSnapshot, number: int, answer: ProviderAnswer, *, past_in_flight_window: bool
) -> ProviderAnswer | None:
    """Return the answer to act on, for a status inquiry made when `number` was the last request; None if superseded."""
    if is_superseded(current, number, answer):
        return None
    return trusted_answer(answer, past_in_flight_window=past_in_flight_window, is_first_request=number <= 1)


def answer_in_notification(current: AttemptSnapshot, answer: ProviderAnswer) -> ProviderAnswer:
    """Return the answer to act on, for a notification: it does not say which request it is about.

    "Declined" may be about an earlier request while the last one is charging, so the provider is asked at once.
    """
    is_repeated = current.state in IN_FLIGHT and current.provider_requests > 1
    return ProviderAnswer.UNKNOWN if answer is ProviderAnswer.DECLINED and is_repeated else answer


def change_after(state: AttemptState, answer: ProviderAnswer, intent: IntentStatus) -> AttemptChange | None:
    """Return what `answer` changes, given the status of the intent before it; None if it changes nothing.

    An attempt that stays in flight counts as a change, because its next inquiry may be planned anew.
    Raises UnexpectedAnswerError.
    """
    after = state_after(state, answer, intent)
    if after is state and after not in IN_FLIGHT:
        return None
    return AttemptChange(after, intent_trigger(state, after))


def needs_inquiry(state: AttemptState, *, can_inquire: bool) -> bool:
    """Return whether the verifier has to ask about an attempt that was settled as `state`."""
    return state is AttemptState.UNKNOWN and can_inquire


def keeps_inquiries(before: AttemptSnapshot, after: AttemptState, *, is_own_report: bool) -> bool:
    """Return whether planned inquiries go on after the attempt was settled as `after`.

    A request can come to the provider after the in-flight window: the network held it up, or the database's clock was
    set forward. Only if the provider reported by itself about the only request, nothing more can come.
    """
    is_final = is_own_report and before.provider_requests <= 1
    return not is_final and after not in CHARGED | IN_FLIGHT


def is_past_in_flight_window(sent_at: datetime | None, now: datetime) -> bool:
    """Return whether a request that was sent at `sent_at` can no longer reach the provider."""
    return sent_at is not None and sent_at + IN_FLIGHT_WINDOW <= now
