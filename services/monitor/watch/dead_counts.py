"""Counts what lies in the topics that nobody consumes: of the last hour, of the last day, and in all."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from time import monotonic

from services.monitor.watch.seen import DeadLetters
from shared.domain.dead_letters.topic_tail import looking_into
from shared.domain.topics import DEAD_LETTERS, WEBHOOKS_DEAD
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
                    with looking_into(self._settings, topic) as tail:
                        now = datetime.now(UTC)
                        since = [
                            tail.behind - max(tail.first, tail.offset_at(now - past))
                            for past in (_HOUR, _DAY)
                        ]
                        counted = DeadLetters(tail.behind - tail.first, *since)
                self._known[topic.name] = (monotonic(), bounds, counted)
        return {name: counted for name, (_, _, counted) in self._known.items()}
