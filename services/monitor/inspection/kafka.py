"""Reads the state of Kafka: a snapshot, the health of groups, throughput per topic, and counts of dead letters."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from time import monotonic

from services.monitor.inspection.snapshots import DeadLetterCounts, KafkaState, TopicRate
from shared.domain.dead_letters.topic_reader import open_topic_reader
from shared.domain.topics import ALL_TOPICS, DEAD_LETTERS, WEBHOOKS_DEAD
from shared.platform.kafka.inspection.health import GroupHealthTracker
from shared.platform.kafka.inspection.inspector import KafkaInspector
from shared.platform.kafka.inspection.snapshot import KafkaSnapshot
from shared.platform.settings import KafkaSettings

_DEAD_LETTER_TOPICS = (DEAD_LETTERS, WEBHOOKS_DEAD)
_COUNT_EVERY_S = 30.0
"""How often to recount a topic in which nothing is new: old records leave the last hour slowly."""
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)


class KafkaReader:
    """Creates its clients at the first read. For one thread."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._inspector: KafkaInspector | None = None
        self._previous: KafkaSnapshot | None = None
        self._health = GroupHealthTracker()
        self._dead_letters = DeadLetterCounter(settings)

    def read(self) -> KafkaState:
        """Return the current state. Raises KafkaUnavailableError within seconds."""
        if self._inspector is None:
            self._inspector = KafkaInspector(self._settings, ALL_TOPICS)
        snapshot = self._inspector.inspect()
        dead_letters = self._dead_letters.count(snapshot)
        rates = rates_between(self._previous, snapshot)
        self._previous = snapshot
        return KafkaState(snapshot, self._health.assess(snapshot), rates, dead_letters)

    def close(self) -> None:
        if self._inspector is not None:
            self._inspector.close()
            self._inspector = None


class DeadLetterCounter:
    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._known: dict[str, tuple[float, tuple[str, int, int], DeadLetterCounts]] = {}

    def count(self, snapshot: KafkaSnapshot) -> Mapping[str, DeadLetterCounts]:
        """Return the counts by topic. Asks Kafka only about topics whose counts may have changed.

        Raises KafkaUnavailableError.
        """
        existing = {topic.name: topic for topic in snapshot.topics if topic.exists and topic.partitions}
        for topic in _DEAD_LETTER_TOPICS:
            if topic.name not in existing:
                self._known.pop(topic.name, None)
                continue
            partition = existing[topic.name].partitions[0]
            bounds = (existing[topic.name].topic_id, partition.low, partition.high)
            counted_at, known_bounds, _ = self._known.get(topic.name, (float("-inf"), None, None))
            if bounds != known_bounds or monotonic() - counted_at > _COUNT_EVERY_S:
                counts = DeadLetterCounts(0, 0, 0)
                if partition.records:
                    with open_topic_reader(self._settings, topic) as reader:
                        now = datetime.now(UTC)
                        last_hour, last_day = (
                            reader.end_offset - max(reader.first_offset, reader.offset_at_time(now - period))
                            for period in (_HOUR, _DAY)
                        )
                        counts = DeadLetterCounts(
                            reader.end_offset - reader.first_offset,
                            last_hour,
                            last_day,
                            existing[topic.name].topic_id,
                            reader.end_offset,
                        )
                self._known[topic.name] = (monotonic(), bounds, counts)
        return {name: counts for name, (_, _, counts) in self._known.items()}


def rates_between(earlier: KafkaSnapshot | None, now: KafkaSnapshot) -> dict[str, TopicRate]:
    """Return the rates by topic, or nothing without an earlier snapshot.

    Offsets that go back, as those of a recreated topic do, count as zero.
    """
    if earlier is None:
        return {}
    seconds = (now.at - earlier.at).total_seconds()
    if seconds <= 0:
        return {}
    ends_before, ends = _end_offsets(earlier), _end_offsets(now)
    committed_before, committed = _committed_offsets(earlier), _committed_offsets(now)
    consumed = {group.topic for group in now.groups}
    return {
        topic.name: TopicRate(
            into=_increase(ends_before.get(topic.name, {}), ends[topic.name]) / seconds,
            out=_increase(committed_before.get(topic.name, {}), committed.get(topic.name, {})) / seconds
            if topic.name in consumed
            else None,
        )
        for topic in now.topics
    }


def _end_offsets(snapshot: KafkaSnapshot) -> dict[str, dict[int, int]]:
    return {
        topic.name: {partition.partition: partition.high for partition in topic.partitions}
        for topic in snapshot.topics
    }


def _committed_offsets(snapshot: KafkaSnapshot) -> dict[str, dict[int, int]]:
    return {
        group.topic: {
            partition.partition: partition.committed
            for partition in group.partitions
            if partition.committed is not None
        }
        for group in snapshot.groups
    }


def _increase(earlier: dict[int, int], now: dict[int, int]) -> int:
    return sum(max(0, offset - earlier.get(partition, offset)) for partition, offset in now.items())
