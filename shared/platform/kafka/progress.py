"""Tells whether a consumer lives: metrics of lag and age, and a heartbeat that notices when it stopped."""

from collections.abc import Sequence
from contextlib import suppress
from time import monotonic, time

from confluent_kafka import Consumer, KafkaException, TopicPartition
from prometheus_client import Counter, Gauge

from shared.platform.kafka.admin import LastingAdmin
from shared.platform.kafka.end_offsets import AskedEnds
from shared.platform.kafka.records import Lane

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


RECORDS = Counter("mizan_consumer_records", "Records processed, by outcome", ["group", "outcome"])
RETRIES = Counter("mizan_consumer_retries", "Retries of a batch or record", ["group", "kind"])
LAG = Gauge(
    "mizan_consumer_lag_records",
    "Records in the partition that are not yet processed",
    ["group", "topic", "partition"],
    multiprocess_mode="livesum",
)
AGE = Gauge(
    "mizan_consumer_oldest_age_seconds",
    "Age of the oldest record that is not yet processed",
    ["group", "topic", "partition"],
    multiprocess_mode="livemax",
)
LAST_POLL = Gauge(
    "mizan_consumer_last_poll_timestamp_seconds",
    "Time of the last poll",
    ["group"],
    multiprocess_mode="livemin",
)

POLL_LIMIT_S = 30.0
STALL_LIMIT_S = 60.0
UNHEARD_LIMIT_S = 60.0
_OBSERVE_EVERY_S = 1.0
_ASK_EVERY_S = 10.0


class ConsumerStalledError(Exception):
    """The process is alive, but this consumer no longer consumes."""


class Progress:
    def __init__(self, group: str, admin: LastingAdmin) -> None:
        self._group = group
        self._ends = AskedEnds(admin)
        self._polled_at = monotonic()
        self._trouble: str | None = None
        self._next_at = 0.0
        self._ask_not_before = 0.0
        self._watched: dict[tuple[str, int], WatchedLane] = {}

    def check(self) -> None:
        """For /readyz, from another thread: raises when the consumer has stopped consuming."""
        now = monotonic()
        silent = now - self._polled_at
        if silent > POLL_LIMIT_S:
            raise ConsumerStalledError(f"{self._group} has not polled for {silent:.0f} s")
        if self._trouble is not None:
            raise ConsumerStalledError(f"{self._group} has nothing to read from: {self._trouble}")
        watched = list(self._watched.values())
        stuck = [str(lane) for lane in watched if now - lane.moved_at > STALL_LIMIT_S]
        if stuck:
            raise ConsumerStalledError(
                f"{self._group} has records waiting and finishes none in {', '.join(stuck)}"
            )
        unheard = [str(lane) for lane in watched if now - lane.told_at > UNHEARD_LIMIT_S]
        if unheard:
            raise ConsumerStalledError(
                f"{self._group} cannot learn whether records wait in {', '.join(unheard)}"
            )

    def troubled(self, trouble: str | None) -> None:
        """Its topic is missing, or is there after all."""
        self._trouble = trouble

    def polled(self) -> None:
        self._polled_at = monotonic()
        LAST_POLL.labels(self._group).set(time())

    def buried(self, count: int) -> None:
        RECORDS.labels(self._group, "dead").inc(count)

    def retried(self, kind: str) -> None:
        RETRIES.labels(self._group, kind).inc()

    def observe(self, consumer: Consumer, lanes: Sequence[Lane]) -> None:
        """Once a second: sets lag and age, and notes of each partition whether it moved or did not have to."""
        if monotonic() < self._next_at:
            return
        self._next_at = monotonic() + _OBSERVE_EVERY_S
        watched = [
            self._watched.setdefault((lane.topic, lane.partition), WatchedLane(lane)) for lane in lanes
        ]
        self._ask(consumer, watched)
        for each in watched:
            each.look(consumer)
            labels = (self._group, each.lane.topic, str(each.lane.partition))
            LAG.labels(*labels).set(each.lag)
            AGE.labels(*labels).set(each.age_s)
            self._count(each)

    def forget(self, lanes: Sequence[Lane]) -> None:
        for lane in lanes:
            self._count(self._watched.pop((lane.topic, lane.partition), WatchedLane(lane)))
            for gauge in (LAG, AGE):
                with suppress(KeyError):  # it was never set
                    gauge.remove(self._group, lane.topic, str(lane.partition))

    def _ask(self, consumer: Consumer, watched: Sequence[WatchedLane]) -> None:
        """What the last question brought, and a new one for those that are quiet."""
        told = self._ends.take_answers()
        for each in watched:
            if (each.lane.topic, each.lane.partition) in told:
                each.told(told[each.lane.topic, each.lane.partition], consumer)
        unheard = [each.place for each in watched if each.is_unheard]
        if unheard and monotonic() >= self._ask_not_before:
            self._ask_not_before = monotonic() + _ASK_EVERY_S
            self._ends.ask(unheard)

    def _count(self, each: WatchedLane) -> None:
        RECORDS.labels(self._group, "finished").inc(each.lane.finished - each.counted)
        each.counted = each.lane.finished
