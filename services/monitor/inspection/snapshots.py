"""What the last poll of each source found. Counts are bounded and say if there is more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, TypeVar

from shared.domain.applications.modes import ApplicationMode
from shared.platform.kafka.inspection.health import GroupHealth, Health
from shared.platform.kafka.inspection.snapshot import GroupSnapshot, KafkaSnapshot, TopicSnapshot

T = TypeVar("T")
STALE_AFTER_S = 30.0
"""An older result is shown as old."""
UNAVAILABLE_AFTER_S = 10.0
"""A source is unavailable if polls have failed for this long. One failed poll can be a broker that restarts."""


@dataclass(frozen=True, slots=True)
class BoundedCount:
    count: int = 0
    has_more: bool = False
    """True if there are more than were counted."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many things wait, and for how long the oldest has waited."""

    count: int = 0
    oldest_age_s: float = 0.0
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class PaymentFigures:
    """Figures of the last hour, unless the name says otherwise. Test and live are never added up."""

    mode: ApplicationMode = ApplicationMode.TEST
    """Which applications are counted: the live ones, or the test ones if none is live."""
    created: BoundedCount = BoundedCount()
    created_in_a_minute: int = 0
    paid: BoundedCount = BoundedCount()
    paid_in_5_minutes: int = 0
    expired: int = 0
    attempts: BoundedCount = BoundedCount()
    attempts_paid: int = 0
    attempts_declined: int = 0

    @property
    def share_paid(self) -> float | None:
        """The share of decided attempts that were paid, or None if none was decided."""
        decided = self.attempts_paid + self.attempts_declined
        return self.attempts_paid / decided if decided else None


@dataclass(frozen=True, slots=True)
class AttemptFigures:
    in_progress: Mapping[str, int]
    """Attempts that the provider may be charging, by state."""
    oldest_age_s: float = 0.0
    """Age of the oldest attempt in progress whose provider supports status inquiries."""
    undecided: Backlog = Backlog()
    """Attempts that need an operator, because the provider does not support status inquiries."""
    awaiting_redirect: BoundedCount = BoundedCount()
    """Attempts whose customer is on a page of the provider."""
    duplicates: BoundedCount = BoundedCount()
    """Duplicate payments that nobody has handled yet."""


@dataclass(frozen=True, slots=True)
class DeliveryFigures:
    pending: Mapping[int, int]
    """Pending deliveries by the step that comes next, 1 to 9."""
    has_more: bool = False
    overdue_s: float = 0.0
    """How overdue the most overdue delivery is, without paused applications."""
    set_aside: BoundedCount = BoundedCount()
    """Deliveries that fell due while their application was paused."""
    succeeded: int = 0
    """This and the next two count deliveries of the last hour's events."""
    failed: int = 0
    tries: int = 0

    @property
    def waiting(self) -> int:
        return sum(self.pending.values())


@dataclass(frozen=True, slots=True)
class DismissedRecord:
    """Where a dismissed dead letter is."""

    topic_id: str
    offset: int


@dataclass(frozen=True, slots=True)
class DatabaseSnapshot:
    now: datetime
    """The time by the database's clock."""
    outbox: Backlog
    payments: PaymentFigures
    attempts: AttemptFigures
    expiry_late_s: float
    intake_age_s: float
    """Age of the oldest event that the webhook intake has not processed."""
    deliveries: DeliveryFigures
    paused_applications: int
    """Applications whose webhooks an operator has paused."""
    failing_applications: int
    """Applications whose endpoints are failing; see failing_endpoints.py."""
    dismissed: Sequence[DismissedRecord] = ()
    """Dead letters that operators dismissed within the last day."""


@dataclass(frozen=True, slots=True)
class TopicRate:
    """Records per second."""

    into: float = 0.0
    out: float | None = None
    """None if no group consumes the topic."""


@dataclass(frozen=True, slots=True)
class DeadLetterCounts:
    total: int
    last_hour: int
    last_day: int
    topic_id: str = ""
    end_offset: int = 0

    def without(self, dismissed: Sequence[DismissedRecord]) -> "DeadLetterCounts":
        """Return the recent counts without these records. Records of an earlier topic of this name are ignored."""
        offsets = [one.offset for one in dismissed if one.topic_id == self.topic_id]
        last_hour, last_day = (
            count - sum(self.end_offset - count <= offset < self.end_offset for offset in offsets)
            for count in (self.last_hour, self.last_day)
        )
        return replace(self, last_hour=last_hour, last_day=last_day)


@dataclass(frozen=True, slots=True)
class KafkaState:
    snapshot: KafkaSnapshot
    group_health: Mapping[str, GroupHealth]
    """By consumer group."""
    rates: Mapping[str, TopicRate]
    """By topic."""
    dead_letters: Mapping[str, DeadLetterCounts]
    """By dead-letter topic; in the state of the system without those that were dismissed."""

    def without_dismissed(self, dismissed: Sequence[DismissedRecord]) -> "KafkaState":
        counts = {topic: counts.without(dismissed) for topic, counts in self.dead_letters.items()}
        return replace(self, dead_letters=counts)

    def health_of(self, group: str) -> Health:
        return self.group_health[group].health

    def topic(self, name: str) -> TopicSnapshot | None:
        return next((topic for topic in self.snapshot.topics if topic.name == name), None)

    def group_of(self, topic: str) -> GroupSnapshot | None:
        return next((group for group in self.snapshot.groups if group.topic == topic), None)


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    name: str
    url: str
    is_up: bool
    """True if it responds at all."""
    is_ready: bool
    reasons: tuple[str, ...]
    """Why it is not ready, as the service reports it."""
    latency_s: float | None


@dataclass(frozen=True, slots=True)
class PollResult(Generic[T]):
    value: T | None = None
    """What the last successful poll found, or None if none has succeeded yet."""
    at: datetime | None = None
    """When the last successful poll ended."""
    error: str | None = None
    """Why the latest poll failed, or None if it succeeded."""
    attempted_at: datetime | None = None

    def age_s(self, now: datetime) -> float | None:
        return None if self.at is None else max(0.0, (now - self.at).total_seconds())

    def is_current(self, now: datetime) -> bool:
        age_s = self.age_s(now)
        return age_s is not None and age_s <= STALE_AFTER_S

    def is_unavailable(self, now: datetime) -> bool:
        """Return whether polls have failed for some time."""
        age_s = self.age_s(now)
        return self.error is not None and (age_s is None or age_s > UNAVAILABLE_AFTER_S)


@dataclass(frozen=True, slots=True)
class SystemState:
    kafka: PollResult[KafkaState] = PollResult()
    database: PollResult[DatabaseSnapshot] = PollResult()
    services: PollResult[tuple[ServiceStatus, ...]] = PollResult()
