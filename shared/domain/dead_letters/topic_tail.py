"""Looks into a topic that nobody consumes: the newest records first, a few at a time.

It is no member of a group and commits nothing. What it reads is bounded in number, bytes and time.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
_PATIENCE_S = 4.0
_STEP = 25
"""So many offsets at first: reading goes forwards only, and each record may have two megabytes."""
_SMALL_STEP = 512 * 1024
_MOST_BYTES = 16 * 1024 * 1024
_READ_AHEAD_KIB = 1024
_LEADER_CHANGES = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)


@dataclass(frozen=True, slots=True)
class Count:
    total: int
    since: int
    """How many of them came since then."""


class Tail:
    """One partition, for as long as somebody looks into it."""

    def __init__(self, consumer: Consumer, topic: str, partition: int) -> None:
        self._consumer = consumer
        self._topic = topic
        self._partition = partition
        self.first, self.behind = self._bounds()
        """The first offset that is still there, and the one that comes next."""

    def newest(self, before: int | None, most: int) -> list[Record]:
        """Newest first, those before that offset. Fewer than `most` only at the beginning, or where they are large."""
        deadline = monotonic() + _PATIENCE_S
        behind = self.behind if before is None else min(before, self.behind)
        found: list[Record] = []
        size, step = 0, _STEP
        while behind > self.first and len(found) < most and size < _MOST_BYTES:
            start = max(self.first, behind - step)
            try:
                records = self._between(start, behind, _MOST_BYTES - size, deadline)
            except KafkaUnavailableError:
                if found:
                    break
                raise
            taken = list(records)[len(found) - most :]
            found.extend(reversed(taken))
            size_of_step = sum(map(_size, taken))
            size += size_of_step
            step = step * 2 if size_of_step < _SMALL_STEP else step
            behind = taken[0].offset if taken else start
        return found

    def following(self, start: int, behind: int, most: int) -> list[Record]:
        """Oldest first, from `start` to before `behind`. Fewer than `most` only at the end, or where they are large."""
        deadline = monotonic() + _PATIENCE_S
        found: list[Record] = []
        size = 0
        for record in self._read(max(start, self.first), min(behind, self.behind), deadline):
            found.append(record)
            size += _size(record)
            if len(found) >= most or size >= _MOST_BYTES:
                break
        return found

    def at(self, offset: int) -> Record | None:
        if not self.first <= offset < self.behind:
            return None
        records = self._read(offset, offset + 1, monotonic() + _PATIENCE_S)
        return next(records, None)

    def offset_at(self, moment: datetime) -> int:
        """Of the first record that came then or later."""
        wanted = TopicPartition(self._topic, self._partition, int(moment.timestamp() * 1000))

        def ask(seconds: float) -> TopicPartition:
            (answer,) = self._consumer.offsets_for_times([wanted], timeout=seconds)
            if answer.error is not None:
                raise KafkaException(answer.error)
            return answer

        offset = self._answer(ask).offset
        return offset if offset >= 0 else self.behind

    def _bounds(self) -> tuple[int, int]:
        place = TopicPartition(self._topic, self._partition)
        bounds = self._answer(lambda seconds: self._consumer.get_watermark_offsets(place, timeout=seconds))
        if bounds is None:
            raise KafkaUnavailableError(f"{self._topic}: Kafka does not answer")
        return bounds

    def _answer(self, ask: Callable[[float], _T]) -> _T:
        """Asks again for a while where a partition is just changing its leader."""
        deadline = monotonic() + _PATIENCE_S
        while True:
            try:
                return ask(max(0.1, deadline - monotonic()))
            except KafkaException as error:
                if error.args[0].code() not in _LEADER_CHANGES or monotonic() > deadline:
                    raise _away(self._topic, error.args[0]) from error
                sleep(0.1)

    def _between(self, start: int, behind: int, most_bytes: int, deadline: float) -> deque[Record]:
        """Oldest first; where they are too large together, the newest of them."""
        kept: deque[Record] = deque()
        size = 0
        for record in self._read(start, behind, deadline):
            kept.append(record)
            size += _size(record)
            while size > most_bytes and len(kept) > 1:
                size -= _size(kept.popleft())
        return kept

    def _read(self, start: int, behind: int, deadline: float) -> Iterator[Record]:
        if start >= behind:
            return
        self._consumer.assign([TopicPartition(self._topic, self._partition, start)])
        while True:
            message = self._consumer.poll(max(0.0, deadline - monotonic()))
            if message is None:
                raise KafkaUnavailableError(f"{self._topic}: Kafka did not answer in time")
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                    return
                raise _away(self._topic, error)
            record = Record.of(message)
            if record.offset >= behind:
                return
            yield record
            if record.offset == behind - 1:
                return


@contextmanager
def looking_into(settings: KafkaSettings, topic: Topic, partition: int = 0) -> Iterator[Tail]:
    """A Tail; raises KafkaUnavailableError within seconds where Kafka or the topic is away."""
    consumer = clients.consumer(
        settings,
        "dead-reader",
        enable_partition_eof="true",
        queued_max_messages_kbytes=_READ_AHEAD_KIB,
        queued_min_messages=100,
        fetch_wait_max_ms=50,
    )
    try:
        yield Tail(consumer, clients.topic_name(settings, topic.name), partition)
    finally:
        consumer.close()


def newest(settings: KafkaSettings, topic: Topic, before: int | None, most: int) -> list[Record]:
    """The newest records before that offset, newest first."""
    with looking_into(settings, topic) as tail:
        return tail.newest(before, most)


def one_at(settings: KafkaSettings, topic: Topic, offset: int, partition: int = 0) -> Record | None:
    """None where it is no longer there, or never was."""
    with looking_into(settings, topic, partition) as tail:
        return tail.at(offset)


def counts(settings: KafkaSettings, topic: Topic, since: datetime) -> Count:
    with looking_into(settings, topic) as tail:
        return Count(tail.behind - tail.first, tail.behind - max(tail.first, tail.offset_at(since)))


def _size(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"")


def _away(topic: str, error: KafkaError) -> KafkaUnavailableError:
    return KafkaUnavailableError(f"{topic}: {error.str()}")
