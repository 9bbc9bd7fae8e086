"""Rules for operators' decisions about an attempt: what may be decided, and what needs a second operator. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from shared.domain.attempts.notes import clean_note, clean_reference
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.states import (
    AWAITING_CUSTOMER,
    CHARGED,
    IN_FLIGHT,
    IN_FLIGHT_WINDOW,
    AttemptSnapshot,
    AttemptState,
    ProviderAnswer,
)
from shared.platform.errors import RefusedError

ANSWER_VALID_FOR = timedelta(minutes=10)
"""How long an operator may decide after the provider's answer was recorded."""


class OutcomeKnownError(RefusedError):
    """The attempt already has an outcome. Nothing was changed."""

    def __init__(self, state: AttemptState) -> None:
        super().__init__(f"the outcome is already known: {state}")
        self.state = state


class AttemptChangedError(RefusedError):
    """The attempt changed since it was shown to the operator. Nothing was changed."""

    def __init__(self, state: AttemptState) -> None:
        super().__init__(f"the attempt has changed and is now {state}; reload it before you decide")
        self.state = state


class StillInFlightError(RefusedError):
    """The request may still reach the provider, so the attempt cannot be declined yet. Nothing was changed."""

    def __init__(self) -> None:
        seconds = int(IN_FLIGHT_WINDOW.total_seconds())
        super().__init__(
            f"the request was sent less than {seconds} seconds ago; wait for the provider's answer"
        )


class ReferenceMissingError(RefusedError):
    """An attempt cannot be decided as paid without the provider's reference. Nothing was changed."""

    def __init__(self) -> None:
        super().__init__("an attempt that was paid needs the provider's reference of the payment")


class RecordedAnswer(StrEnum):
    """What a provider said about an attempt when an operator had it asked."""

    PAID = "paid"
    DECLINED = "declined"
    NOT_PAID = "not_paid"
    """The provider has no record of it, or still waits for the customer."""
    UNKNOWN = "unknown"
    """The provider could not be reached, or did not say."""
    NOT_SUPPORTED = "not_supported"
    """The provider has no status call."""


class ContradictsProviderError(RefusedError):
    """The provider says otherwise. Nothing was changed."""

    def __init__(self, answer: RecordedAnswer) -> None:
        super().__init__(f"the provider was asked and contradicts this decision: it says {answer}")
        self.answer = answer


@dataclass(frozen=True, slots=True)
class OperatorDecision:
    is_paid: bool
    reason: str
    """How the operator knows."""
    reference: str = ""
    """The provider's reference of the payment, or an empty string."""

    @property
    def answer(self) -> ProviderAnswer:
        return ProviderAnswer.PAID if self.is_paid else ProviderAnswer.DECLINED

    def outcome(self) -> AttemptOutcome:
        """Return what to settle the attempt with, its texts cleaned.

        Raises InvalidNoteError, InvalidReferenceError, and ReferenceMissingError if it was paid without one.
        """
        reason, reference = clean_note(self.reason), clean_reference(self.reference)
        if self.is_paid and reference is None:
            raise ReferenceMissingError
        return AttemptOutcome(self.answer, reason, reference, is_from_operator=True)


def can_decide(state: AttemptState, answer: ProviderAnswer) -> bool:
    """Return whether an operator may decide so: paid unless charged already, declined only if the outcome is open."""
    if state in CHARGED:
        return False
    return answer is ProviderAnswer.PAID or state in IN_FLIGHT | AWAITING_CUSTOMER


def check_decision(
    current: AttemptSnapshot, seen: AttemptSnapshot, is_in_flight: Callable[[], bool], *, is_paid: bool
) -> None:
    """Raise a RefusedError if the attempt cannot be decided so now, or is no longer as the operator has seen it.

    `is_in_flight` says whether the last request may still reach the provider. It is called only if that decides.
    """
    if not can_decide(current.state, ProviderAnswer.PAID if is_paid else ProviderAnswer.DECLINED):
        raise OutcomeKnownError(current.state)
    if not seen.matches(current):
        raise AttemptChangedError(current.state)
    if not is_paid and current.state in IN_FLIGHT and is_in_flight():
        raise StillInFlightError


def needs_approval(state: AttemptState, amount: int, approval_above: int, *, is_paid: bool) -> bool:
    """Return whether a second operator has to approve the decision.

    That is so for amounts above `approval_above` (minor units), and for a payment on an attempt that ended without one.
    """
    if amount > approval_above:
        return True
    return is_paid and state in (AttemptState.DECLINED, AttemptState.ABANDONED)


def to_recorded_answer(outcome: AttemptOutcome) -> RecordedAnswer:
    """Return how the provider's answer to a status inquiry is recorded."""
    match outcome.answer:
        case ProviderAnswer.PAID:
            return RecordedAnswer.PAID
        case ProviderAnswer.DECLINED:
            return RecordedAnswer.DECLINED
        case ProviderAnswer.NOT_FOUND | ProviderAnswer.NEEDS_CODE | ProviderAnswer.NEEDS_REDIRECT:
            return RecordedAnswer.NOT_PAID
        case ProviderAnswer.UNKNOWN:
            return RecordedAnswer.UNKNOWN if outcome.can_inquire else RecordedAnswer.NOT_SUPPORTED


def is_definite(answer: RecordedAnswer) -> bool:
    """Return whether the provider said if it was paid."""
    return answer in (RecordedAnswer.PAID, RecordedAnswer.DECLINED, RecordedAnswer.NOT_PAID)


def check_contradiction(answer: RecordedAnswer, *, is_paid: bool) -> None:
    """Raise ContradictsProviderError if the provider's answer rules the decision out."""
    if is_definite(answer) and (answer is RecordedAnswer.PAID) is not is_paid:
        raise ContradictsProviderError(answer)
