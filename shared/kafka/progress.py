"""Tells whether a consumer lives: metrics of lag and age, and a heartbeat that notices when it stopped."""

from collections.abc import Sequence
from contextlib import suppress
from time import monotonic, time

from confluent_kafka import Consumer, KafkaException, TopicPartition
from prometheus_client import Counter, Gauge

from shared.kafka.tasks import Lane

RECORDS = Counter(
    "mizan_consumer_records", "Records finished, and those of them that are dead", ["group", "outcome"]
)
RETRIES = Counter("mizan_consumer_retries", "Times a batch or record was tried again", ["group", "kind"])
LAG = Gauge(
    "mizan_consumer_lag_records",
    "Records in the partition that are not done yet",
    ["group", "topic", "partition"],
    multiprocess_mode="livesum",
)
AGE = Gauge(
    "mizan_consumer_oldest_age_seconds",
    "Age of the oldest record that is not done yet",
    ["group", "topic", "partition"],
    multiprocess_mode="livemax",
)
LAST_POLL = Gauge(
    "mizan_consumer_last_poll_timestamp_seconds",
    "When the consumer polled last",
    ["group"],
    multiprocess_mode="livemin",
)

POLL_LIMIT_S = 30.0
STALL_LIMIT_S = 60.0
_OBSERVE_EVERY_S = 1.0
_ASK_EVERY_S = 10.0


class ConsumerStalledError(Exception):
    """The process is alive, but this consumer no longer consumes."""


class _Seen:
    """What the last look at a partition found."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.position: int | None = None
        self.finished = 0
        self.moved_at = monotonic()
        self.high: int | None = None
        self.asked_at = monotonic()


class Progress:
    def __init__(self, group: str) -> None:
        self._group = group
        self._polled_at = monotonic()
        self._trouble: str | None = None
        self._next_at = 0.0
        self._seen: dict[tuple[str, int], _Seen] = {}

    def check(self) -> None:
        """For /readyz, from another thread: raises when the consumer has stopped consuming."""
        silent = monotonic() - self._polled_at
        if silent > POLL_LIMIT_S:
            raise ConsumerStalledError(f"{self._group} has not polled for {silent:.0f} s")
        if self._trouble is not None:
            raise ConsumerStalledError(f"{self._group} has nothing to read from: {self._trouble}")
        stuck = [seen for seen in list(self._seen.values()) if monotonic() - seen.moved_at > STALL_LIMIT_S]
        if stuck:
            names = ", ".join(f"{seen.lane.topic}/{seen.lane.partition}" for seen in stuck)
            raise ConsumerStalledError(f"{self._group} has records waiting and finishes none in {names}")

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
        for lane in lanes:
            seen = self._seen.setdefault((lane.topic, lane.partition), _Seen(lane))
            lag = _lag(consumer, seen)
            labels = (self._group, lane.topic, str(lane.partition))
            LAG.labels(*labels).set(lag)
            AGE.labels(*labels).set(_age(lane))
            self._count(seen)
            is_held = bool(lane.backlog) and lane.ready_at > time()
            if lag == 0 or is_held or seen.position != lane.position:
                seen.moved_at = monotonic()
            seen.position = lane.position

    def forget(self, lanes: Sequence[Lane]) -> None:
        for lane in lanes:
            seen = self._seen.pop((lane.topic, lane.partition), _Seen(lane))
            self._count(seen)
            for gauge in (LAG, AGE):
                with suppress(KeyError):  # it was never set
                    gauge.remove(self._group, lane.topic, str(lane.partition))

    def _count(self, seen: _Seen) -> None:
        RECORDS.labels(self._group, "finished").inc(seen.lane.finished - seen.finished)
        seen.finished = seen.lane.finished


def _lag(consumer: Consumer, seen: _Seen) -> int:
    if seen.lane.position is None:
        return 0
    return max((_high(consumer, seen) or 0) - seen.lane.position, seen.lane.watermark.unfinished)


def _high(consumer: Consumer, seen: _Seen) -> int | None:
    """The end of the partition, as the client knows it from fetching; of a paused one it must be asked for."""
    partition = TopicPartition(seen.lane.topic, seen.lane.partition)
    try:
        if not seen.lane.paused:
            _, seen.high = consumer.get_watermark_offsets(partition, cached=True)
        elif monotonic() - seen.asked_at > _ASK_EVERY_S:
            seen.asked_at = monotonic()
            _, seen.high = consumer.get_watermark_offsets(partition, timeout=1, cached=False)
    except (KafkaException, TypeError):  # it returns None where it ran out of time
        pass
    return seen.high


def _age(lane: Lane) -> float:
    oldest = lane.watermark.oldest_timestamp
    return 0.0 if oldest is None else max(0.0, time() - oldest)
