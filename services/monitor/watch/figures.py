"""What one look into the database found. Counts are bounded: beyond the bound they say that there are more. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Counted:
    count: int = 0
    is_more: bool = False
    """There are more than were counted."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Things that wait, and for how long the oldest has."""

    count: int = 0
    oldest_s: float = 0.0
    is_more: bool = False


@dataclass(frozen=True, slots=True)
class Payments:
    """Of the last hour, where no other time is named."""

    created: Counted = Counted()
    created_in_a_minute: int = 0
    paid: Counted = Counted()
    paid_in_5_minutes: int = 0
    expired: int = 0
    attempts: Counted = Counted()
    attempts_paid: int = 0
    attempts_declined: int = 0

    @property
    def share_paid(self) -> float | None:
        """Of the attempts that were decided; None without any."""
        decided = self.attempts_paid + self.attempts_declined
        return self.attempts_paid / decided if decided else None


@dataclass(frozen=True, slots=True)
class Attempts:
    under_way: Mapping[str, int]
    """By state: the provider may be charging."""
    oldest_s: float = 0.0
    """Of those under way whose provider can be asked."""
    undecided: Waiting = Waiting()
    """Nobody can be asked: an operator has to decide."""
    on_pages: Counted = Counted()
    """Their customers are on a page of the provider's."""
    duplicates: Counted = Counted()
    """Not handled yet."""


@dataclass(frozen=True, slots=True)
class Deliveries:
    pending: Mapping[int, int]
    """By the step that comes next, 1 to 9."""
    is_more: bool = False
    overdue_s: float = 0.0
    """Of the one that is most overdue, of the applications that are not paused."""
    parked: Counted = Counted()
    succeeded: int = 0
    """This, and the next three: of the events of the last hour."""
    failed: int = 0
    tries: int = 0
    is_cut: bool = False

    @property
    def waiting(self) -> int:
        return sum(self.pending.values())


@dataclass(frozen=True, slots=True)
class Figures:
    now: datetime
    """By the database's clock."""
    outbox: Waiting
    payments: Payments
    attempts: Attempts
    expiry_late_s: float
    not_taken_in_s: float
    deliveries: Deliveries
    paused: int
    """Applications whose webhooks an operator has paused."""
    failing: int
    """Applications whose endpoints took nothing lately."""
