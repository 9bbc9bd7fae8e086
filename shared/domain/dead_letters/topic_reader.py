"""Reads a topic that has no consumer group: a few records at a time, newest or oldest first.

It joins no group and commits nothing. What it reads is limited in number, bytes and time.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from time import monotonic, sleep
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from shared.platform.kafka import clients
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.records import Record
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings

_T = TypeVar("_T")
_TIMEOUT_S = 4.0
_STEP = 25
"""How many offsets to go back at first: Kafka reads forwards only, and a record may have two megabytes."""
_SMALL_STEP = 512 * 1024
_MAX_BYTES = 16 * 1024 * 1024
_READ_AHEAD_KIB = 1024
_LEADER_CHANGES = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)


class TopicReader:
    """Reads one partition; made by `open_topic_reader`. Its methods raise KafkaUnavailableError."""

    def __init__(self, consumer: Consumer, topic: str, partition: int) -> None:
        self._consumer = consumer
        self._topic = topic
        self._partition = partition
        self.first_offset, self.end_offset = self._bounds()
        """The first offset that still exists, and the offset after the last one."""

    def read_newest(self, before: int | None, limit: int) -> list[Record]:
        """Return records before that offset, newest first; fewer than `limit` at the start or if they are large."""
        deadline = monotonic() + _TIMEOUT_S
        end = self.end_offset if before is None else min(before, self.end_offset)
        found: list[Record] = []
        size, step = 0, _STEP
        while end > self.first_offset and len(found) < limit and size < _MAX_BYTES:
            start = max(self.first_offset, end - step)
            try:
                records = self._between(start, end, _MAX_BYTES - size, deadline)
            except KafkaUnavailableError:
                if found:
                    break
                raise
            taken = list(records)[len(found) - limit :]
            found.extend(reversed(taken))
            size_of_step = sum(map(_size, taken))
            size += size_of_step
            step = step * 2 if size_of_step < _SMALL_STEP else step
            end = taken[0].offset if taken else start
        return found

    def read_from(self, start: int, end: int, limit: int) -> list[Record]:
        """Return records from `start` to before `end`, oldest first; fewer than `limit` at the end or if large."""
        deadline = monotonic() + _TIMEOUT_S
        found: list[Record] = []
        size = 0
        for record in self._read(max(start, self.first_offset), min(end, self.end_offset), deadline):
            found.append(record)
            size += _size(record)
            if len(found) >= limit or size >= _MAX_BYTES:
                break
        return found

    def read_at(self, offset: int) -> Record | None:
        if not self.first_offset <= offset < self.end_offset:
            return None
        records = self._read(offset, offset + 1, monotonic() + _TIMEOUT_S)
        return next(records, None)

    def offset_at_time(self, moment: datetime) -> int:
        """Return the offset of the first record that arrived then or later."""
        wanted = TopicPartition(self._topic, self._partition, int(moment.timestamp() * 1000))

        def request(seconds: float) -> TopicPartition:
            (answer,) = self._consumer.offsets_for_times([wanted], timeout=seconds)
            if answer.error is not None:
                raise KafkaException(answer.error)
            return answer

        offset = self._request(request).offset
        return offset if offset >= 0 else self.end_offset

    def _bounds(self) -> tuple[int, int]:
        place = TopicPartition(self._topic, self._partition)
        bounds = self._request(lambda seconds: self._consumer.get_watermark_offsets(place, timeout=seconds))
        if bounds is None:
            raise KafkaUnavailableError(f"{self._topic}: Kafka does not respond")
        return bounds

    def _request(self, request: Callable[[float], _T]) -> _T:
        """Send a request, and retry it for some seconds while the partition changes its leader."""
        deadline = monotonic() + _TIMEOUT_S
        while True:
            try:
                return request(max(0.1, deadline - monotonic()))
            except KafkaException as error:
                if error.args[0].code() not in _LEADER_CHANGES or monotonic() > deadline:
                    raise _unavailable(self._topic, error.args[0]) from error
                sleep(0.1)

    def _between(self, start: int, end: int, max_bytes: int, deadline: float) -> deque[Record]:
        """Return records oldest first; if they are too large together, only the newest of them."""
        kept: deque[Record] = deque()
        size = 0
        for record in self._read(start, end, deadline):
            kept.append(record)
            size += _size(record)
            while size > max_bytes and len(kept) > 1:
                size -= _size(kept.popleft())
        return kept

    def _read(self, start: int, end: int, deadline: float) -> Iterator[Record]:
        if start >= end:
            return
        self._consumer.assign([TopicPartition(self._topic, self._partition, start)])
        while True:
            message = self._consumer.poll(max(0.0, deadline - monotonic()))
            if message is None:
                raise KafkaUnavailableError(f"{self._topic}: Kafka did not respond in time")
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                    return
                raise _unavailable(self._topic, error)
            record = Record.of(message)
            if record.offset >= end:
                return
            yield record
            if record.offset == end - 1:
                return


@contextmanager
def open_topic_reader(settings: KafkaSettings, topic: Topic, partition: int = 0) -> Iterator[TopicReader]:
    """Open a reader. Raises KafkaUnavailableError within seconds if Kafka or the topic is missing."""
    consumer = clients.consumer(
        settings,
        "dead-reader",
        enable_partition_eof="true",
        queued_max_messages_kbytes=_READ_AHEAD_KIB,
        queued_min_messages=100,
        fetch_wait_max_ms=50,
    )
    try:
        yield TopicReader(consumer, clients.topic_name(settings, topic.name), partition)
    finally:
        consumer.close()


def read_newest(settings: KafkaSettings, topic: Topic, before: int | None, limit: int) -> list[Record]:
    """Return the newest records before that offset, newest first."""
    with open_topic_reader(settings, topic) as reader:
        return reader.read_newest(before, limit)


def read_record(settings: KafkaSettings, topic: Topic, offset: int, partition: int = 0) -> Record | None:
    """Return the record at this offset; None if it does not exist."""
    with open_topic_reader(settings, topic, partition) as reader:
        return reader.read_at(offset)


def _size(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"")


def _unavailable(topic: str, error: KafkaError) -> KafkaUnavailableError:
    return KafkaUnavailableError(f"{topic}: {error.str()}")
