"""What goes to a provider and what comes back."""

from dataclasses import dataclass, field
from time import monotonic
from uuid import UUID

from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.intents.states import IntentStatus


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """One request to the provider. Its answer goes back with it: what is said of an earlier one is old news."""

    attempt: UUID
    number: int
    """Counts the requests that may charge; 0 while there was none."""
    send_deadline: float = field(compare=False)
    """On this process's monotonic clock."""

    def is_past_deadline(self) -> bool:
        """A process that stalled this long must not call the provider any more: others take it for lost."""
        return monotonic() > self.send_deadline


@dataclass(frozen=True, slots=True)
class StatusInquiry:
    """Somebody asks the provider what became of a request."""

    attempt: UUID
    number: int
    past_in_flight_window: bool
    """When the question was put: the request could not be on its way any more."""


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """What a provider, or an operator in its place, says of an attempt."""

    answer: ProviderAnswer
    reason: str | None = None
    """Why it was declined, or why a code is asked for once more."""
    provider_reference: str | None = None
    can_inquire: bool = True
    """Whether this provider can tell more when asked later, where the answer is unknown."""


@dataclass(frozen=True, slots=True)
class SettlementResult:
    """How things stand afterwards."""

    attempt: AttemptState
    intent: IntentStatus
    is_new: bool = field(default=False, compare=False)
    """Whether this brought the attempt into its state; a repeat does not."""
    since_sent_s: float | None = field(default=None, compare=False)
    """Since the last request that may charge, where there was one and this is new."""
