"""Tells whether a consumer lives: metrics of lag and age, and a heartbeat that notices when it stopped."""

from collections.abc import Sequence
from contextlib import suppress
from time import monotonic, time

from confluent_kafka import Consumer, KafkaException, TopicPartition
from prometheus_client import Counter, Gauge

from shared.kafka.tasks import Lane

RECORDS = Counter("mizan_consumer_records", "Records handled", ["group", "outcome"])
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


class ConsumerStalledError(Exception):
    """The process is alive, but this consumer no longer consumes."""


class Progress:
    def __init__(self, group: str) -> None:
        self._group = group
        self._polled_at = monotonic()
        self._moved_at = monotonic()
        self._positions: dict[tuple[str, int], int | None] = {}
        self._next_at = 0.0

    def check(self) -> None:
        """For /readyz, from another thread: raises when the consumer has stopped consuming."""
        silent = monotonic() - self._polled_at
        if silent > POLL_LIMIT_S:
            raise ConsumerStalledError(f"{self._group} has not polled for {silent:.0f} s")
        stuck = monotonic() - self._moved_at
        if stuck > STALL_LIMIT_S:
            raise ConsumerStalledError(
                f"{self._group} has records waiting and finished none for {stuck:.0f} s"
            )

    def polled(self) -> None:
        self._polled_at = monotonic()
        LAST_POLL.labels(self._group).set(time())

    def handled(self, count: int) -> None:
        RECORDS.labels(self._group, "handled").inc(count)

    def buried(self) -> None:
        RECORDS.labels(self._group, "dead").inc()

    def retried(self, kind: str) -> None:
        RETRIES.labels(self._group, kind).inc()

    def observe(self, consumer: Consumer, lanes: Sequence[Lane]) -> None:
        """Once a second: sets lag and age, and notes whether anything moved or nothing had to."""
        if monotonic() < self._next_at:
            return
        self._next_at = monotonic() + _OBSERVE_EVERY_S
        stuck = False
        for lane in lanes:
            lag = _lag(consumer, lane)
            labels = (self._group, lane.topic, str(lane.partition))
            LAG.labels(*labels).set(lag)
            AGE.labels(*labels).set(_age(lane) if lag else 0)
            place = (lane.topic, lane.partition)
            moved = self._positions.get(place) != lane.position
            self._positions[place] = lane.position
            if moved:
                self._moved_at = monotonic()
            stuck = stuck or (lag > 0 and lane.held_until <= time())
        if not stuck:
            self._moved_at = monotonic()

    def forget(self, lanes: Sequence[Lane]) -> None:
        for lane in lanes:
            self._positions.pop((lane.topic, lane.partition), None)
            for gauge in (LAG, AGE):
                with suppress(KeyError):  # it was never set
                    gauge.remove(self._group, lane.topic, str(lane.partition))


def _lag(consumer: Consumer, lane: Lane) -> int:
    """From what the client already knows; no request is sent."""
    if lane.position is None:
        return 0
    try:
        known = consumer.get_watermark_offsets(TopicPartition(lane.topic, lane.partition), cached=True)
    except KafkaException:
        known = None
    high = known[1] if known else 0
    return max(high - lane.position, lane.watermark.unfinished)


def _age(lane: Lane) -> float:
    oldest = lane.oldest_timestamp
    return 0.0 if oldest is None else max(0.0, time() - oldest)
