"""What the last poll of each source found. Counts are bounded and say when there is more."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from shared.platform.kafka.inspection.health import GroupHealth, Health
from shared.platform.kafka.inspection.snapshot import GroupSnapshot, KafkaSnapshot, TopicSnapshot


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


T = TypeVar("T")
STALE_AFTER_S = 30.0
"""What was seen longer ago is told as old."""
AWAY_AFTER_S = 10.0
"""One look that fails is nothing yet: a broker that restarts, a slow second."""


@dataclass(frozen=True, slots=True)
class Looked(Generic[T]):
    found: T | None = None
    """What the last look that worked has found; None when none did yet."""
    at: datetime | None = None
    """When that was."""
    trouble: str | None = None
    """Why the last look of all did not work; None when it did."""
    tried_at: datetime | None = None

    def age_s(self, now: datetime) -> float | None:
        return None if self.at is None else max(0.0, (now - self.at).total_seconds())

    def is_current(self, now: datetime) -> bool:
        age_s = self.age_s(now)
        return age_s is not None and age_s <= STALE_AFTER_S

    def is_away(self, now: datetime) -> bool:
        """It was looked for, for a while, and is not there."""
        age_s = self.age_s(now)
        return self.trouble is not None and (age_s is None or age_s > AWAY_AFTER_S)


@dataclass(frozen=True, slots=True)
class Flow:
    """Records a second."""

    into: float = 0.0
    out: float | None = None
    """None where no group consumes."""


@dataclass(frozen=True, slots=True)
class DeadLetters:
    total: int
    in_an_hour: int
    in_a_day: int


@dataclass(frozen=True, slots=True)
class KafkaSeen:
    view: KafkaSnapshot
    judgements: Mapping[str, GroupHealth]
    """Of each group."""
    flows: Mapping[str, Flow]
    """Of each topic."""
    dead: Mapping[str, DeadLetters]
    """Of each topic that nobody consumes."""

    def standing(self, group: str) -> Health:
        return self.judgements[group].health

    def topic(self, name: str) -> TopicSnapshot | None:
        return next((topic for topic in self.view.topics if topic.name == name), None)

    def group_of(self, topic: str) -> GroupSnapshot | None:
        return next((group for group in self.view.groups if group.topic == topic), None)


@dataclass(frozen=True, slots=True)
class ServiceSeen:
    name: str
    url: str
    is_up: bool
    """It answers at all."""
    is_ready: bool
    reasons: tuple[str, ...]
    """Why it is not ready, in its own words."""
    latency_s: float | None


@dataclass(frozen=True, slots=True)
class Seen:
    kafka: Looked[KafkaSeen] = Looked()
    database: Looked[Figures] = Looked()
    services: Looked[tuple[ServiceSeen, ...]] = Looked()
