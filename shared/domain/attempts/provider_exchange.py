"""Requests to providers, what they report, and the result of settling it. Pure."""

from dataclasses import dataclass, field
from time import monotonic
from uuid import UUID

from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.intents.states import IntentStatus


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """One request to the provider. Its response is settled with it, so that a response to an earlier one is ignored."""

    attempt: UUID
    number: int
    """Number of the last request of the attempt that may charge. 0 if there was none."""
    send_deadline: float = field(compare=False)
    """On this process's monotonic clock."""

    def is_past_deadline(self) -> bool:
        """Return whether the request must not be sent any more, because other processes now consider it lost."""
        return monotonic() > self.send_deadline


@dataclass(frozen=True, slots=True)
class StatusInquiry:
    """A request to the provider for the status of the attempt's last request."""

    attempt: UUID
    number: int
    past_in_flight_window: bool
    """Whether the request could no longer be in flight when the inquiry was made."""


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """What a provider, or an operator in its place, reports about an attempt."""

    answer: ProviderAnswer
    reason: str | None = None
    """Why it was declined, or why another code is needed."""
    provider_reference: str | None = None
    can_inquire: bool = True
    """Whether a later status inquiry can resolve an unknown answer."""
    is_from_operator: bool = False
    """Whether an operator reports it. A typed reference may be wrong, and proves no second charge."""
    wrong_code: int | None = None
    """Which entry of a code it was, if the provider says that the code is wrong. 1 is the first of the attempt."""


@dataclass(frozen=True, slots=True)
class SettlementResult:
    """The states of the attempt and its intent after settling."""

    attempt: AttemptState
    intent: IntentStatus
    is_new: bool = field(default=False, compare=False)
    """Whether this changed the state of the attempt. A repeated report does not."""
    since_sent_s: float | None = field(default=None, compare=False)
    """Seconds since the last request that may charge, if there was one and `is_new`."""
