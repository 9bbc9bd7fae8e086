"""Takes snapshots of Kafka, with throughput per topic and counts of dead letters."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from time import monotonic

from services.monitor.inspection.snapshots import DeadLetters, Flow, KafkaSeen
from shared.domain.dead_letters.topic_reader import open_topic_reader
from shared.domain.topics import ALL_TOPICS, DEAD_LETTERS, WEBHOOKS_DEAD
from shared.platform.kafka.inspection.health import GroupHealthTracker
from shared.platform.kafka.inspection.inspector import KafkaInspector
from shared.platform.kafka.inspection.snapshot import KafkaSnapshot
from shared.platform.settings import KafkaSettings

_TOPICS = (DEAD_LETTERS, WEBHOOKS_DEAD)
_EVERY_S = 30.0
"""An hour passes slowly; what is new is counted at once."""
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)


class DeadCounts:
    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._known: dict[str, tuple[float, tuple[int, int], DeadLetters]] = {}

    def of(self, view: KafkaSnapshot) -> Mapping[str, DeadLetters]:
        """Kafka is asked only where something may have changed. Raises KafkaUnavailableError."""
        found = {topic.name: topic for topic in view.topics if topic.exists and topic.partitions}
        for topic in _TOPICS:
            if topic.name not in found:
                self._known.pop(topic.name, None)
                continue
            partition = found[topic.name].partitions[0]
            bounds = (partition.low, partition.high)
            counted_at, bounds_then, _ = self._known.get(topic.name, (float("-inf"), (-1, -1), None))
            if bounds != bounds_then or monotonic() - counted_at > _EVERY_S:
                counted = DeadLetters(0, 0, 0)
                if partition.records:
                    with open_topic_reader(self._settings, topic) as reader:
                        now = datetime.now(UTC)
                        since = [
                            reader.end_offset - max(reader.first_offset, reader.offset_at_time(now - past))
                            for past in (_HOUR, _DAY)
                        ]
                        counted = DeadLetters(reader.end_offset - reader.first_offset, *since)
                self._known[topic.name] = (monotonic(), bounds, counted)
        return {name: counted for name, (_, _, counted) in self._known.items()}


def flows_between(earlier: KafkaSnapshot | None, now: KafkaSnapshot) -> dict[str, Flow]:
    """Of each topic; none on the first look. Offsets that go back (a topic made again) count as nothing."""
    if earlier is None:
        return {}
    seconds = (now.at - earlier.at).total_seconds()
    if seconds <= 0:
        return {}
    ends_before, ends = _ends(earlier), _ends(now)
    done_before, done = _done(earlier), _done(now)
    consumed = {group.topic for group in now.groups}
    return {
        topic.name: Flow(
            into=_sum_of_steps(ends_before.get(topic.name, {}), ends[topic.name]) / seconds,
            out=_sum_of_steps(done_before.get(topic.name, {}), done.get(topic.name, {})) / seconds
            if topic.name in consumed
            else None,
        )
        for topic in now.topics
    }


def _ends(view: KafkaSnapshot) -> dict[str, dict[int, int]]:
    return {
        topic.name: {partition.partition: partition.high for partition in topic.partitions}
        for topic in view.topics
    }


def _done(view: KafkaSnapshot) -> dict[str, dict[int, int]]:
    return {
        group.topic: {
            partition.partition: partition.committed
            for partition in group.partitions
            if partition.committed is not None
        }
        for group in view.groups
    }


def _sum_of_steps(earlier: dict[int, int], now: dict[int, int]) -> int:
    return sum(_steps(earlier, now))


def _steps(earlier: dict[int, int], now: dict[int, int]) -> Iterable[int]:
    return (max(0, offset - earlier.get(partition, offset)) for partition, offset in now.items())


class KafkaLooks:
    """Makes its clients at the first look. For one thread."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._inspector: KafkaInspector | None = None
        self._earlier: KafkaSnapshot | None = None
        self._health = GroupHealthTracker()
        self._dead = DeadCounts(settings)

    def look(self) -> KafkaSeen:
        """Raises KafkaUnavailableError within seconds."""
        if self._inspector is None:
            self._inspector = KafkaInspector(self._settings, ALL_TOPICS)
        view = self._inspector.inspect()
        dead = self._dead.of(view)
        flows = flows_between(self._earlier, view)
        self._earlier = view
        return KafkaSeen(view, self._health.assess(view), flows, dead)

    def close(self) -> None:
        if self._inspector is not None:
            self._inspector.close()
            self._inspector = None
