"""The progress of a consumer: metrics of lag and age, and a check that notices when it has stopped consuming."""

from collections.abc import Sequence
from contextlib import suppress
from time import monotonic, time

from confluent_kafka import Consumer, KafkaException, TopicPartition
from prometheus_client import Counter, Gauge

from shared.platform.kafka.admin import EndOffsets, ReconnectingAdmin
from shared.platform.kafka.records import AssignedPartition

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
STALE_LIMIT_S = 60.0
_STALE_AFTER_S = 10.0
_OBSERVE_EVERY_S = 1.0
_REQUEST_EVERY_S = 10.0
_COMMITTED_TIMEOUT_S = 0.2


class ConsumerStalledError(Exception):
    """The process is alive, but this consumer no longer consumes."""


class PartitionProgress:
    """What is known about one assigned partition: how far it is, where it ends, and when either last changed."""

    def __init__(self, partition: AssignedPartition) -> None:
        self.partition = partition
        self.counted = 0
        """How many of its finished records the metric has counted."""
        self.progressed_at = monotonic()
        """When it last made progress, or had nothing to do."""
        self.confirmed_at = monotonic()
        """When its lag was last known for sure."""
        self.client_empty_at = 0.0
        """When a poll last found no record of any partition in the client."""
        self._watermark = partition.watermark
        self._position: int | None = None
        self._start: int | None = None
        """Where it will start to read, as long as it has read nothing."""
        self._first = 0
        """The first offset that Kafka still has."""
        self._end: int | None = None

    @property
    def key(self) -> tuple[str, int]:
        return self.partition.topic, self.partition.partition

    def __str__(self) -> str:
        return f"{self.partition.topic}/{self.partition.partition}"

    def update(self, consumer: Consumer) -> None:
        """Read the end offset that the client knows, and note whether the partition made progress."""
        if self._watermark is not self.partition.watermark:  # the topic was recreated
            self._watermark, self._start, self._end = self.partition.watermark, None, None
        with suppress(KafkaException):  # the client does not know it yet
            _, end = consumer.get_watermark_offsets(self.topic_partition, cached=True)
            self._end = end if self._end is None else max(end, self._end)
        if self._position != self.partition.position:
            self.progressed_at = self.confirmed_at = monotonic()
        elif self.lag == 0 or self._is_held:
            self.progressed_at = monotonic()
        self._position = self.partition.position

    @property
    def is_stale(self) -> bool:
        """Whether its end offset should be fetched from Kafka, because nothing has confirmed it for a while."""
        return monotonic() - self.confirmed_at > _STALE_AFTER_S

    def set_offsets(self, offsets: tuple[int, int], consumer: Consumer) -> None:
        """Take over the first and the end offset that Kafka itself reports."""
        first, self._end = offsets
        self._first = first
        if self.partition.position is None and self._start is None:
            try:
                (committed,) = consumer.committed([self.topic_partition], timeout=_COMMITTED_TIMEOUT_S)
            except KafkaException:
                return
            exists = committed.error is None and first <= committed.offset <= self._end
            self._start = committed.offset if exists else first
        self.confirmed_at = monotonic()

    @property
    def next_offset(self) -> int | None:
        """Where it continues to read once everything it has read is finished; None if that is not known."""
        position = self.partition.position if self.partition.position is not None else self._start
        return None if position is None else max(position, self._first)

    @property
    def lag(self) -> int:
        position = self.next_offset
        ahead = 0 if position is None or self._end is None else self._end - position
        return max(ahead, self.partition.watermark.unfinished)

    def is_fetch_stalled(self, for_s: float) -> bool:
        """Tell whether Kafka, which responds, has records for it, and none have arrived for this long.

        Records that the client has fetched, and that wait in it behind those of other partitions, have arrived: only
        a poll that finds the client empty tells that it has none.
        """
        return (
            self.lag > 0
            and self.next_offset is not None
            and self.partition.watermark.unfinished == 0
            and not self.partition.paused
            and self.client_empty_at - self.progressed_at > for_s
            and monotonic() - self.confirmed_at < _STALE_AFTER_S + _REQUEST_EVERY_S
        )

    @property
    def age_s(self) -> float:
        oldest = self.partition.watermark.oldest_timestamp
        return 0.0 if oldest is None else max(0.0, time() - oldest)

    @property
    def _is_held(self) -> bool:
        """Whether its handler holds it until a later time. A poison message that waits is no such hold: it is stuck."""
        head = self.partition.backlog[0] if self.partition.backlog else None
        return head is not None and head.poison_reason is None and head.held_until > time()

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.partition.topic, self.partition.partition)


class ConsumerProgress:
    def __init__(self, group: str, admin: ReconnectingAdmin) -> None:
        self._group = group
        self._end_offsets = EndOffsets(admin)
        self._polled_at = monotonic()
        self._client_empty_at = 0.0
        self._problem: str | None = None
        self._next_at = 0.0
        self._request_not_before = 0.0
        self._partitions: dict[tuple[str, int], PartitionProgress] = {}

    def check(self) -> None:
        """For /readyz, from another thread: raise ConsumerStalledError when the consumer has stopped consuming."""
        now = monotonic()
        silent = now - self._polled_at
        if silent > POLL_LIMIT_S:
            raise ConsumerStalledError(f"{self._group} has not polled for {silent:.0f} s")
        if self._problem is not None:
            raise ConsumerStalledError(f"{self._group} has nothing to read from: {self._problem}")
        partitions = list(self._partitions.values())
        stalled = [str(each) for each in partitions if now - each.progressed_at > STALL_LIMIT_S]
        if stalled:
            raise ConsumerStalledError(
                f"{self._group} has records waiting and finishes none in {', '.join(stalled)}"
            )
        stale = [str(each) for each in partitions if now - each.confirmed_at > STALE_LIMIT_S]
        if stale:
            raise ConsumerStalledError(
                f"{self._group} cannot learn whether records wait in {', '.join(stale)}"
            )

    def set_problem(self, problem: str | None) -> None:
        """Note that a topic is missing; None when it exists again."""
        self._problem = problem

    def record_poll(self, *, found_record: bool) -> None:
        self._polled_at = monotonic()
        if not found_record:
            self._client_empty_at = self._polled_at
        LAST_POLL.labels(self._group).set(time())

    def count_dead_letters(self, count: int) -> None:
        RECORDS.labels(self._group, "dead").inc(count)

    def count_retry(self, kind: str) -> None:
        RETRIES.labels(self._group, kind).inc()

    def observe(
        self, consumer: Consumer, assigned: Sequence[AssignedPartition]
    ) -> Sequence[PartitionProgress]:
        """Once a second: update the progress of each partition, and set the metrics of lag and age.

        Returns the progress of all partitions, or nothing if it is too early.
        """
        if monotonic() < self._next_at:
            return ()
        self._next_at = monotonic() + _OBSERVE_EVERY_S
        partitions = [
            self._partitions.setdefault((each.topic, each.partition), PartitionProgress(each))
            for each in assigned
        ]
        self._fetch_end_offsets(consumer, partitions)
        for progress in partitions:
            progress.update(consumer)
            progress.client_empty_at = self._client_empty_at
            labels = (self._group, progress.partition.topic, str(progress.partition.partition))
            LAG.labels(*labels).set(progress.lag)
            AGE.labels(*labels).set(progress.age_s)
            self._count_finished(progress)
        return partitions

    def forget(self, revoked: Sequence[AssignedPartition]) -> None:
        """Count the last records of revoked partitions, and remove their metrics."""
        for each in revoked:
            self._count_finished(self._partitions.pop((each.topic, each.partition), PartitionProgress(each)))
            for gauge in (LAG, AGE):
                with suppress(KeyError):  # it was never set
                    gauge.remove(self._group, each.topic, str(each.partition))

    def _fetch_end_offsets(self, consumer: Consumer, partitions: Sequence[PartitionProgress]) -> None:
        """Take over the answers to the last request, and send a new one for partitions that are stale."""
        offsets = self._end_offsets.take_answers()
        for progress in partitions:
            key = (progress.partition.topic, progress.partition.partition)
            if key in offsets:
                progress.set_offsets(offsets[key], consumer)
        stale = [progress.topic_partition for progress in partitions if progress.is_stale]
        if stale and monotonic() >= self._request_not_before:
            self._request_not_before = monotonic() + _REQUEST_EVERY_S
            self._end_offsets.request(stale)

    def _count_finished(self, progress: PartitionProgress) -> None:
        RECORDS.labels(self._group, "finished").inc(progress.partition.finished - progress.counted)
        progress.counted = progress.partition.finished
