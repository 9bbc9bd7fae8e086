"""Tells whether a consumer lives: metrics of lag and age, and a heartbeat that notices when it stopped."""

from collections.abc import Sequence
from contextlib import suppress
from time import monotonic, time

from confluent_kafka import Consumer
from prometheus_client import Counter, Gauge

from shared.kafka.asked_ends import AskedEnds
from shared.kafka.lasting_admin import LastingAdmin
from shared.kafka.tasks import Lane
from shared.kafka.watched_lane import WatchedLane

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
