"""What one look at Kafka found. Names of topics and groups are without the installation's prefix. Pure."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PartitionView:
    partition: int
    low: int
    high: int

    @property
    def records(self) -> int:
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class TopicView:
    name: str
    partitions: tuple[PartitionView, ...]
    oldest_at: datetime | None
    """When the oldest record that is still in it was produced; None when it is empty."""
    exists: bool

    @property
    def records(self) -> int:
        return sum(partition.records for partition in self.partitions)


@dataclass(frozen=True, slots=True)
class LagView:
    """How far a group is in one partition."""

    partition: int
    committed: int | None
    """As the group left it, even where that place is gone; None when it never committed."""
    high: int
    lag: int
    """Records not yet done. Where the committed place is gone, the group begins anew: all that are there."""
    lag_s: float
    """Age of the oldest record not yet done, 0 without one; in a delay topic, how late it is."""
    head_at: datetime | None
    """When the oldest record not yet done was produced."""
    due_at: datetime | None
    """In a delay topic, when that record is due; None elsewhere."""
    committed_at: datetime | None


@dataclass(frozen=True, slots=True)
class MemberView:
    id: str
    client_id: str
    host: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupView:
    name: str
    topic: str
    state: str
    """As Kafka calls it, in lower case: stable, empty, dead (not even a name), preparing rebalance …"""
    members: tuple[MemberView, ...]
    partitions: tuple[LagView, ...]
    is_delay: bool
    """Its records are held until they are due, and are late only from then on."""

    @property
    def lag(self) -> int:
        return sum(partition.lag for partition in self.partitions)

    @property
    def lag_s(self) -> float:
        return max((partition.lag_s for partition in self.partitions), default=0.0)

    @property
    def waiting(self) -> int:
        """In a delay topic, the records not yet moved on, due or not; 0 elsewhere."""
        return self.lag if self.is_delay else 0

    @property
    def next_due_at(self) -> datetime | None:
        return min((view.due_at for view in self.partitions if view.due_at is not None), default=None)

    @property
    def committed_at(self) -> datetime | None:
        """When it last committed anywhere; None when it never did, or did not say."""
        return max((view.committed_at for view in self.partitions if view.committed_at), default=None)


@dataclass(frozen=True, slots=True)
class KafkaView:
    at: datetime
    topics: tuple[TopicView, ...]
    groups: tuple[GroupView, ...]
    brokers: int
