"""What one inspection of Kafka found. Names of topics and groups are without the installation's prefix. Pure."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    partition: int
    low: int
    """The offset of its first record."""
    high: int
    """The offset that its next record will get."""

    @property
    def records(self) -> int:
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    name: str
    partitions: tuple[PartitionOffsets, ...]
    oldest_at: datetime | None
    """When the oldest record that is still in it was produced; None when it is empty."""
    exists: bool
    topic_id: str = ""
    """Distinguishes it from an earlier topic of the same name; empty if it does not exist."""

    @property
    def records(self) -> int:
        return sum(partition.records for partition in self.partitions)


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far a group is in one partition."""

    partition: int
    committed: int | None
    """As the group committed it, even if that offset no longer exists; None when it never committed."""
    high: int
    lag: int
    """Records not yet done. If the committed offset no longer exists, all records: the group starts over."""
    lag_s: float
    """Age of the oldest record not yet done, 0 without one; in a delay topic, how late it is."""
    head_at: datetime | None
    """When the oldest record not yet done was produced."""
    due_at: datetime | None
    """In a delay topic, when that record is due; None elsewhere."""
    committed_at: datetime | None


@dataclass(frozen=True, slots=True)
class GroupMember:
    id: str
    client_id: str
    host: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    name: str
    topic: str
    state: str
    """As Kafka calls it, in lower case: stable, empty, dead (Kafka does not know it), preparing rebalance …"""
    members: tuple[GroupMember, ...]
    partitions: tuple[PartitionLag, ...]
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
        return min((each.due_at for each in self.partitions if each.due_at is not None), default=None)

    @property
    def committed_at(self) -> datetime | None:
        """When it last committed in any partition; None when it never did, or the commit has no time."""
        return max((each.committed_at for each in self.partitions if each.committed_at), default=None)


@dataclass(frozen=True, slots=True)
class KafkaSnapshot:
    at: datetime
    topics: tuple[TopicSnapshot, ...]
    groups: tuple[GroupSnapshot, ...]
    brokers: int
