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
from shared.platform.kafka.inspection.groups import Committed, GroupOffsets, Membership, memberships
from shared.platform.kafka.inspection.snapshot import GroupView, KafkaView, LagView, PartitionView, TopicView
from shared.platform.kafka.inspection.topics import Head, KnownHeads, Place, find_ends, find_topics
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings

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
            is_delay=self.topic.due_at is not None,
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


_LISTING_TIMEOUT_S = 10.0
_LISTING_PATIENCE_S = 30.0


def look_at_topics(settings: KafkaSettings, topics: Sequence[Topic]) -> tuple[TopicView, ...]:
    """Tries again for a while: a topic that was just made may have no leader yet, and a broker may be coming back."""
    look = Retrying(
        wait=wait_fixed(0.1),
        stop=stop_after_delay(_LISTING_PATIENCE_S),
        retry=retry_if_exception_type((KafkaException, KafkaUnavailableError, TimeoutError)),
        reraise=True,
    )
    try:
        return look(_look, settings, topics)
    except KafkaException as error:
        raise KafkaUnavailableError(f"topics cannot be looked at: {error.args[0].str()}") from error
    except TimeoutError as error:
        raise KafkaUnavailableError("topics cannot be looked at: no answer") from error


def _look(settings: KafkaSettings, wanted: Sequence[Topic]) -> tuple[TopicView, ...]:
    deadline = Deadline(_LISTING_TIMEOUT_S)
    topics = {clients.topic_name(settings, topic.name): topic for topic in wanted}
    admin = clients.admin(settings, "watching")
    _, found = find_topics(admin, list(topics), deadline)
    ends = find_ends(admin, found, deadline)
    sights = [
        Sight(topic, found[name].id if name in found else None, ends.get(name, ()), {})
        for name, topic in topics.items()
    ]
    with closing(KnownHeads(settings)) as heads:
        oldest = heads.of({place for sight in sights for place in sight.places()}, deadline)
    return tuple(sight.topic_view(oldest) for sight in sights)


_TIMEOUT_S = 5.0
# Then the clients are made anew, for librdkafka 2.16 can lose all its brokers while one of them starts.
_PATIENCE_S = 30.0


class KafkaWatcher:
    """Keeps its clients between looks, which may follow each other within seconds. For one thread."""

    def __init__(self, settings: KafkaSettings, topics: Sequence[Topic]) -> None:
        self._topics = {clients.topic_name(settings, topic.name): topic for topic in topics}
        self._groups = {
            clients.group_name(settings, topic.group): name
            for name, topic in self._topics.items()
            if topic.group
        }
        # A look that fails says why; all these clients would say it too, again and again.
        self._settings = replace(settings, client={"log_level": "0", **settings.client})
        self._failing_since: float | None = None
        self._connect()

    def look(self, now: datetime | None = None) -> KafkaView:
        """`now` is given where another clock than this machine's decides. Raises KafkaUnavailableError in seconds."""
        began = monotonic()
        if self._failing_since is not None and began - self._failing_since > _PATIENCE_S:
            self.close()
            self._connect()
            self._failing_since = began
        try:
            view = self._look(Deadline(_TIMEOUT_S), now)
        except (KafkaException, KafkaUnavailableError, TimeoutError) as error:
            self._failing_since = began if self._failing_since is None else self._failing_since
            reason = error.args[0].str() if isinstance(error, KafkaException) else error
            raise KafkaUnavailableError(f"Kafka cannot be looked at: {reason}") from error
        self._failing_since = None
        return view

    def close(self) -> None:
        self._heads.close()
        self._offsets.close()

    def _connect(self) -> None:
        self._admin = clients.admin(self._settings, "watching")
        self._offsets = GroupOffsets(
            self._settings, [topic.group for topic in self._topics.values() if topic.group]
        )
        self._heads = KnownHeads(self._settings)

    def _look(self, deadline: Deadline, now: datetime | None) -> KafkaView:
        """Offsets before ends: the other way round, what is done in between would seem to be beyond the end.

        And before members: a coordinator that has told its offsets has loaded its groups too, one that starts has not.
        """
        self._admin.poll(0)  # lets it tell what it has to say, which would pile up otherwise
        brokers, found = find_topics(self._admin, list(self._topics), deadline)
        committed = {
            name: self._offsets.of(topic.group, name, found[name].partitions, deadline)
            for name, topic in self._topics.items()
            if topic.group and name in found
        }
        people = memberships(self._admin, self._groups, deadline)
        ends = find_ends(self._admin, found, deadline)
        sights = [
            Sight(
                topic, found[name].id if name in found else None, ends.get(name, ()), committed.get(name, {})
            )
            for name, topic in self._topics.items()
        ]
        heads = self._heads.of({place for sight in sights for place in sight.places()}, deadline)
        at = now or datetime.now(UTC)
        of_topic = {topic: people.get(group, Membership()) for group, topic in self._groups.items()}
        return KafkaView(
            at=at,
            topics=tuple(sight.topic_view(heads) for sight in sights),
            groups=tuple(
                sight.group_view(heads, of_topic[name], at)
                for name, sight in zip(self._topics, sights, strict=True)
                if sight.topic.group
            ),
            brokers=brokers,
        )
