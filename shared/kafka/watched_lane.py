"""One assigned partition under the eyes of `progress.py`: how much waits in it, and since when it gets nowhere.

What the client tells of the end of a partition comes with what it fetches, so a client that stopped fetching would see
no lag for ever. Of a partition in which nothing moves, Kafka is asked.
"""

from contextlib import suppress
from time import monotonic, time

from confluent_kafka import Consumer, KafkaException, TopicPartition

from shared.kafka.tasks import Lane

ASK_EVERY_S = 10.0
_PATIENCE_S = 0.2


class WatchedLane:
    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.counted = 0
        self.moved_at = monotonic()
        """When it last got on, or had nothing to do."""
        self.told_at = monotonic()
        """When it was last known for sure what there is to do."""
        self._watermark = lane.watermark
        self._position: int | None = None
        self._start: int | None = None
        """Where it will begin to read, as long as it has read nothing."""
        self._end: int | None = None

    def __str__(self) -> str:
        return f"{self.lane.topic}/{self.lane.partition}"

    def look(self, consumer: Consumer) -> None:
        """At what the client knows."""
        if self._watermark is not self.lane.watermark:  # the topic was made again
            self._watermark, self._start, self._end = self.lane.watermark, None, None
        with suppress(KafkaException):  # it knows nothing of it yet
            _, end = consumer.get_watermark_offsets(self.place, cached=True)
            self._end = end if self._end is None else max(end, self._end)
        if self._position != self.lane.position:
            self.moved_at = self.told_at = monotonic()
        elif self.lag == 0 or self._is_held:
            self.moved_at = monotonic()
        self._position = self.lane.position

    @property
    def is_unheard(self) -> bool:
        return monotonic() - self.told_at > ASK_EVERY_S

    def told(self, ends: tuple[int, int], consumer: Consumer) -> None:
        """By Kafka itself."""
        first, self._end = ends
        if self.lane.position is None and self._start is None:
            try:
                (committed,) = consumer.committed([self.place], timeout=_PATIENCE_S)
            except KafkaException:
                return
            is_there = committed.error is None and first <= committed.offset <= self._end
            self._start = committed.offset if is_there else first
        self.told_at = monotonic()

    @property
    def lag(self) -> int:
        begin = self.lane.position if self.lane.position is not None else self._start
        ahead = 0 if begin is None or self._end is None else self._end - begin
        return max(ahead, self.lane.watermark.unfinished)

    @property
    def age_s(self) -> float:
        oldest = self.lane.watermark.oldest_timestamp
        return 0.0 if oldest is None else max(0.0, time() - oldest)

    @property
    def _is_held(self) -> bool:
        """By its handler, until its time. What waits to be put into the dead letters is stuck."""
        head = self.lane.backlog[0] if self.lane.backlog else None
        return head is not None and head.hopeless is None and head.held_until > time()

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.lane.topic, self.lane.partition)
