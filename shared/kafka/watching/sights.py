"""What was found of one topic and its group, and the views that are made of it. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from shared.kafka.watching.committed import Committed
from shared.kafka.watching.heads import Head, Place
from shared.kafka.watching.members import Membership
from shared.kafka.watching.views import GroupView, LagView, PartitionView, TopicView
from shared.topics import Topic

Heads = Mapping[Place, Head]


@dataclass(frozen=True, slots=True)
class Sight:
    topic: Topic
    topic_id: str | None
    """None where it does not exist."""
    partitions: tuple[PartitionView, ...]
    committed: Mapping[int, Committed]
    """By partition; empty where there is no group, or nobody asks for it."""

    def places(self) -> Iterator[Place]:
        """Whose records tell how old the topic is, and for how long its group lets it wait."""
        for partition in self.partitions:
            if partition.records:
                yield self._place(partition, partition.low)
            if self.committed and self._next(partition) < partition.high:
                yield self._place(partition, self._next(partition))

    def topic_view(self, heads: Heads) -> TopicView:
        oldest = (heads.get(self._place(partition, partition.low)) for partition in self.partitions)
        return TopicView(
            name=self.topic.name,
            partitions=self.partitions,
            oldest_at=min((head.at for head in oldest if head is not None), default=None),
            exists=self.topic_id is not None,
        )

    def group_view(self, heads: Heads, membership: Membership, now: datetime) -> GroupView:
        assert self.topic.group is not None
        return GroupView(
            name=self.topic.group,
            topic=self.topic.name,
            state=membership.state,
            members=membership.members,
            partitions=tuple(self._lag(partition, heads, now) for partition in self.partitions),
        )

    def _lag(self, partition: PartitionView, heads: Heads, now: datetime) -> LagView:
        committed, next_offset = self.committed[partition.partition], self._next(partition)
        head = heads.get(self._place(partition, next_offset)) if next_offset < partition.high else None
        return LagView(
            partition=partition.partition,
            committed=committed.offset,
            high=partition.high,
            lag=partition.high - next_offset,
            lag_s=0.0 if head is None else head.waits_s(now),
            head_at=None if head is None else head.at,
            due_at=None if head is None else head.due_at,
            committed_at=committed.at,
        )

    def _next(self, partition: PartitionView) -> int:
        """What the group does next. Where it never committed, or its place is gone, it begins at the first record:
        retention took the place, or the topic was deleted and made again."""
        committed = self.committed[partition.partition].offset
        if committed is None or not partition.low <= committed <= partition.high:
            return partition.low
        return committed

    def _place(self, partition: PartitionView, offset: int) -> Place:
        return Place(self.topic, self.topic_id or "", partition.partition, offset)
