"""The health of consumer groups, judged from one snapshot after another. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shared.platform.kafka.inspection.snapshot import GroupSnapshot, KafkaSnapshot, PartitionLag

BEHIND_S = 30.0
STALLED_S = 60.0


class Health(StrEnum):
    """From good to bad."""

    HEALTHY = "healthy"
    BEHIND = "behind"
    """It makes progress, but its oldest record has waited for long."""
    STALLED = "stalled"
    """It has members and records wait, but none gets done."""
    NO_MEMBERS = "no_members"
    """Records wait, and the group has no member."""
    UNKNOWN = "unknown"
    """Kafka cannot be reached."""

    @property
    def severity(self) -> int:
        return list(Health).index(self)


@dataclass(frozen=True, slots=True)
class GroupHealth:
    health: Health
    """The worst health of its partitions: one stalled partition of six is a stalled group."""
    partitions: Mapping[int, Health]


class GroupHealthTracker:
    """Assesses every snapshot, and remembers since when each committed offset has not moved.

    Records that a delay topic holds until they are due are no lag. Without a member they count all the same, because
    nobody will move them.
    """

    def __init__(self) -> None:
        self._unmoved: dict[tuple[str, int], tuple[int | None, datetime]] = {}

    def assess(self, snapshot: KafkaSnapshot) -> dict[str, GroupHealth]:
        """Return the health of each group, by its name."""
        return {group.name: self._assess_group(group, snapshot.at) for group in snapshot.groups}

    def _assess_group(self, group: GroupSnapshot, now: datetime) -> GroupHealth:
        partitions = {lag.partition: self._assess_partition(group, lag, now) for lag in group.partitions}
        worst = max(partitions.values(), key=lambda health: health.severity, default=Health.HEALTHY)
        return GroupHealth(worst, partitions)

    def _assess_partition(self, group: GroupSnapshot, lag: PartitionLag, now: datetime) -> Health:
        unmoved_s = self._unmoved_s((group.name, lag.partition), lag, now)
        if lag.lag and not group.members:
            return Health.NO_MEMBERS
        if lag.lag_s > STALLED_S and unmoved_s >= STALLED_S:
            return Health.STALLED
        return Health.BEHIND if lag.lag_s > BEHIND_S else Health.HEALTHY

    def _unmoved_s(self, key: tuple[str, int], lag: PartitionLag, now: datetime) -> float:
        """Return how long the offset has not moved while records waited. Idle time does not count."""
        offset, since = self._unmoved.get(key, (lag.committed, now))
        if offset != lag.committed or lag.lag_s == 0:
            since = now
        self._unmoved[key] = (lag.committed, since)
        return (now - since).total_seconds()
