"""Inspects topics and the consumer groups that read them: offsets, lag, members. For the monitor and the CLI."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic

from confluent_kafka import KafkaException
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from shared.platform.kafka import clients
from shared.platform.kafka.clients import Deadline
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.inspection.groups import (
    CommittedOffset,
    CommittedOffsetReader,
    GroupMembership,
    fetch_memberships,
)
from shared.platform.kafka.inspection.snapshot import (
    GroupSnapshot,
    KafkaSnapshot,
    PartitionLag,
    PartitionOffsets,
    TopicSnapshot,
)
from shared.platform.kafka.inspection.topics import (
    HeadRecord,
    HeadRecordCache,
    RecordPosition,
    fetch_partition_offsets,
    fetch_topics,
)
from shared.platform.kafka.refusals import explain
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings

_TIMEOUT_S = 5.0
# After so long without an answer the clients are replaced: librdkafka 2.16 can lose all its brokers while one starts.
_RECONNECT_AFTER_S = 30.0
_LISTING_TIMEOUT_S = 10.0
_LISTING_RETRY_S = 30.0

Heads = Mapping[RecordPosition, HeadRecord]


class KafkaInspector:
    """Takes snapshots of topics and groups. It keeps its clients, so inspections may follow each other within seconds.

    For one thread.
    """

    def __init__(self, settings: KafkaSettings, topics: Sequence[Topic]) -> None:
        self._topics = {clients.topic_name(settings, topic.name): topic for topic in topics}
        self._groups = {
            clients.group_name(settings, topic.group): name
            for name, topic in self._topics.items()
            if topic.group
        }
        # `inspect` reports why it failed; all these clients would log the same, again and again.
        self._settings = replace(settings, client={"log_level": "0", **settings.client})
        self._failing_since: float | None = None
        self._connect()

    def inspect(self, now: datetime | None = None) -> KafkaSnapshot:
        """Take a snapshot; `now` replaces this machine's clock. Raises KafkaUnavailableError after a few seconds."""
        started_at = monotonic()
        if self._failing_since is not None and started_at - self._failing_since > _RECONNECT_AFTER_S:
            self.close()
            self._connect()
            self._failing_since = started_at
        try:
            snapshot = self._inspect(Deadline(_TIMEOUT_S), now)
        except (KafkaException, KafkaUnavailableError, TimeoutError) as error:
            self._failing_since = started_at if self._failing_since is None else self._failing_since
            reason = error.args[0].str() if isinstance(error, KafkaException) else error
            self._admin.poll(0)  # so that we learn why
            raise KafkaUnavailableError(
                f"Kafka cannot be inspected: {reason}{explain(self._settings)}"
            ) from error
        self._failing_since = None
        return snapshot

    def close(self) -> None:
        self._heads.close()
        self._committed.close()

    def _connect(self) -> None:
        self._admin = clients.admin(self._settings, "watching")
        self._committed = CommittedOffsetReader(
            self._settings, [topic.group for topic in self._topics.values() if topic.group]
        )
        self._heads = HeadRecordCache(self._settings)

    def _inspect(self, deadline: Deadline, now: datetime | None) -> KafkaSnapshot:
        """Fetch committed offsets before end offsets, or records finished in between would seem beyond the end.

        Fetch them before the members, too: a coordinator that is starting answers with its offsets only once it has
        loaded its groups.
        """
        self._admin.poll(0)  # handles its events, which would pile up otherwise
        brokers, found = fetch_topics(self._admin, list(self._topics), deadline)
        committed = {
            name: self._committed.fetch(topic.group, name, found[name].partitions, deadline)
            for name, topic in self._topics.items()
            if topic.group and name in found
        }
        memberships = fetch_memberships(self._admin, self._groups, deadline)
        offsets = fetch_partition_offsets(self._admin, found, deadline)
        topics = [
            TopicOffsets(
                topic,
                found[name].id if name in found else None,
                offsets.get(name, ()),
                committed.get(name, {}),
            )
            for name, topic in self._topics.items()
        ]
        heads = self._heads.fetch({head for topic in topics for head in topic.head_positions()}, deadline)
        at = now or datetime.now(UTC)
        by_topic = {topic: memberships.get(group, GroupMembership()) for group, topic in self._groups.items()}
        return KafkaSnapshot(
            at=at,
            topics=tuple(topic.topic_snapshot(heads) for topic in topics),
            groups=tuple(
                topic.group_snapshot(heads, by_topic[name], at)
                for name, topic in zip(self._topics, topics, strict=True)
                if topic.topic.group
            ),
            brokers=brokers,
        )


@dataclass(frozen=True, slots=True)
class TopicOffsets:
    """The offsets of a topic's partitions and of its group, from which snapshots are made."""

    topic: Topic
    topic_id: str | None
    """None if it does not exist."""
    partitions: tuple[PartitionOffsets, ...]
    committed: Mapping[int, CommittedOffset]
    """By partition; empty without a group, or if the group is not inspected."""

    def head_positions(self) -> Iterator[RecordPosition]:
        """The positions whose records tell the age of the topic and of its group's lag."""
        for partition in self.partitions:
            if partition.records:
                yield self._position(partition, partition.low)
            if self.committed and self._next_offset(partition) < partition.high:
                yield self._position(partition, self._next_offset(partition))

    def topic_snapshot(self, heads: Heads) -> TopicSnapshot:
        oldest = (heads.get(self._position(partition, partition.low)) for partition in self.partitions)
        return TopicSnapshot(
            name=self.topic.name,
            partitions=self.partitions,
            oldest_at=min((head.at for head in oldest if head is not None), default=None),
            exists=self.topic_id is not None,
            topic_id=self.topic_id or "",
        )

    def group_snapshot(self, heads: Heads, membership: GroupMembership, now: datetime) -> GroupSnapshot:
        assert self.topic.group is not None
        return GroupSnapshot(
            name=self.topic.group,
            topic=self.topic.name,
            state=membership.state,
            members=membership.members,
            partitions=tuple(self._lag(partition, heads, now) for partition in self.partitions),
            is_delay=self.topic.due_at is not None,
        )

    def _lag(self, partition: PartitionOffsets, heads: Heads, now: datetime) -> PartitionLag:
        committed, next_offset = self.committed[partition.partition], self._next_offset(partition)
        head = heads.get(self._position(partition, next_offset)) if next_offset < partition.high else None
        return PartitionLag(
            partition=partition.partition,
            committed=committed.offset,
            high=partition.high,
            lag=partition.high - next_offset,
            lag_s=0.0 if head is None else head.waiting_s(now),
            head_at=None if head is None else head.at,
            due_at=None if head is None else head.due_at,
            committed_at=committed.at,
        )

    def _next_offset(self, partition: PartitionOffsets) -> int:
        """Return the offset that the group processes next.

        That is the first record if it never committed, or if the committed offset no longer exists because retention
        deleted it or the topic was recreated.
        """
        committed = self.committed[partition.partition].offset
        if committed is None or not partition.low <= committed <= partition.high:
            return partition.low
        return committed

    def _position(self, partition: PartitionOffsets, offset: int) -> RecordPosition:
        return RecordPosition(self.topic, self.topic_id or "", partition.partition, offset)


def inspect_topics(settings: KafkaSettings, topics: Sequence[Topic]) -> tuple[TopicSnapshot, ...]:
    """Inspect topics without their groups; raises KafkaUnavailableError.

    It retries for 30 seconds: a new topic may have no leader yet, and a broker may be coming back.
    """
    retry = Retrying(
        wait=wait_fixed(0.1),
        stop=stop_after_delay(_LISTING_RETRY_S),
        retry=retry_if_exception_type((KafkaException, KafkaUnavailableError, TimeoutError)),
        reraise=True,
    )
    try:
        return retry(_inspect_topics, settings, topics)
    except KafkaException as error:
        raise KafkaUnavailableError(f"topics cannot be inspected: {error.args[0].str()}") from error
    except TimeoutError as error:
        raise KafkaUnavailableError("topics cannot be inspected: no answer") from error


def _inspect_topics(settings: KafkaSettings, wanted: Sequence[Topic]) -> tuple[TopicSnapshot, ...]:
    deadline = Deadline(_LISTING_TIMEOUT_S)
    names = {clients.topic_name(settings, topic.name): topic for topic in wanted}
    admin = clients.admin(settings, "watching")
    _, found = fetch_topics(admin, list(names), deadline)
    offsets = fetch_partition_offsets(admin, found, deadline)
    topics = [
        TopicOffsets(topic, found[name].id if name in found else None, offsets.get(name, ()), {})
        for name, topic in names.items()
    ]
    with closing(HeadRecordCache(settings)) as cache:
        heads = cache.fetch({head for topic in topics for head in topic.head_positions()}, deadline)
    return tuple(topic.topic_snapshot(heads) for topic in topics)
