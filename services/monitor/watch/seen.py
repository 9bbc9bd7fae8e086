"""What was seen last, each part with its time and with what kept us from looking. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from services.monitor.watch.figures import Figures
from services.monitor.watch.flows import Flow
from shared.platform.kafka.inspection.health import GroupHealth, Health
from shared.platform.kafka.inspection.snapshot import GroupSnapshot, KafkaSnapshot, TopicSnapshot

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
