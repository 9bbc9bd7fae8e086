"""Topics: their ids, the offsets of their partitions, and the records at given positions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, TopicDescription

from shared.platform.kafka import clients
from shared.platform.kafka.admin import EARLIEST, LATEST, is_unknown
from shared.platform.kafka.clients import Deadline
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.inspection.snapshot import PartitionOffsets
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings

_T = TypeVar("_T")
FIRST_RECORD_ONLY: dict[str, str | int] = {
    "enable_partition_eof": "true",
    "queued_min_messages": 1,
    "fetch_message_max_bytes": 1024,
    "fetch_wait_max_ms": 10,
    "fetch_error_backoff_ms": 50,
}
"""Client settings for `read_first_records`: fetch little, and report the end of a partition."""
_NO_RECORD = (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART)  # noqa: SLF001
_LATEST = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TopicInfo:
    id: str
    partitions: int


def fetch_topics(
    admin: AdminClient, names: Sequence[str], deadline: Deadline
) -> tuple[int, dict[str, TopicInfo]]:
    """Return the number of brokers, and those of the topics that exist.

    Listing the topics also refreshes the client's leaders: otherwise it would send an old leader epoch.
    """
    metadata = admin.list_topics(timeout=deadline.left())
    answers = admin.describe_topics(TopicCollection(list(names)), request_timeout=deadline.left())
    found = {name: _description(answer, deadline) for name, answer in answers.items()}
    return len(metadata.brokers), {
        name: TopicInfo(str(topic.topic_id), len(topic.partitions))
        for name, topic in found.items()
        if topic is not None
    }


def fetch_partition_offsets(
    admin: AdminClient, topics: Mapping[str, TopicInfo], deadline: Deadline
) -> dict[str, tuple[PartitionOffsets, ...]]:
    """Return where each partition starts and ends, by topic; raises KafkaUnavailableError when one is unknown."""
    wanted = [
        TopicPartition(name, number) for name, topic in topics.items() for number in range(topic.partitions)
    ]
    if not wanted:
        return {}
    lows, highs = (
        admin.list_offsets(dict.fromkeys(wanted, which), request_timeout=deadline.left())
        for which in (EARLIEST, LATEST)
    )
    offsets: dict[str, list[PartitionOffsets]] = {name: [] for name in topics}
    for tp in wanted:
        low, high = (_offset(answers[tp], deadline) for answers in (lows, highs))
        offsets[tp.topic].append(PartitionOffsets(tp.partition, low, max(low, high)))
    return {name: tuple(partitions) for name, partitions in offsets.items()}


def read_first_records(
    consumer: Consumer, positions: Sequence[TopicPartition], deadline: Deadline
) -> Iterator[Message]:
    """Read the first record from each position on, where there is one.

    If a position no longer exists, the first record of the partition counts. A consumer that never subscribed joins
    no group by this.
    """
    consumer.assign(list(positions))
    answered: set[tuple[str, int | None]] = set()
    while len(answered) < len(positions):
        message = consumer.poll(deadline.left())
        topic = None if message is None else message.topic()
        if message is None or topic is None or (topic, message.partition()) in answered:
            continue  # nothing yet, an event about a broker, or a further record
        error = message.error()
        if error is None:
            yield message
        elif error.code() not in _NO_RECORD:
            raise KafkaException(error)
        answered.add((topic, message.partition()))


@dataclass(frozen=True, slots=True)
class RecordPosition:
    """`topic_id` distinguishes a topic from an earlier one of the same name."""

    topic: Topic
    topic_id: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class HeadRecord:
    """The next record that a group has to process: when it was produced, and in a delay topic, when it is due."""

    at: datetime
    due_at: datetime | None

    @classmethod
    def of(cls, topic: Topic, message: Message) -> "HeadRecord":
        return cls(
            _to_datetime(message.timestamp()[1]), topic.due_at(message.value()) if topic.due_at else None
        )

    def waiting_s(self, now: datetime) -> float:
        """Return for how long it could have been processed; 0 while it is not due."""
        return max(0.0, (now - (self.due_at or self.at)).total_seconds())


class HeadRecordCache:
    """Reads the record at a position once, because it never changes. Positions no longer asked for are forgotten."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._consumer = clients.consumer(settings, "watching", None, **FIRST_RECORD_ONLY)
        self._known: dict[RecordPosition, HeadRecord] = {}

    def fetch(
        self, positions: Collection[RecordPosition], deadline: Deadline
    ) -> dict[RecordPosition, HeadRecord]:
        """Return the records at these positions. One that was deleted in this very moment is left out."""
        self._known = {position: self._known[position] for position in positions if position in self._known}
        unknown = {position for position in positions if position not in self._known}
        try:
            while unknown:
                # A partition can be read at one position at a time.
                batch = {(position.topic.name, position.partition): position for position in unknown}
                self._read(list(batch.values()), deadline)
                unknown -= set(batch.values())
        finally:
            self._consumer.unassign()
        return self._known

    def close(self) -> None:
        self._consumer.close()

    def _read(self, positions: Sequence[RecordPosition], deadline: Deadline) -> None:
        wanted = {
            (clients.topic_name(self._settings, position.topic.name), position.partition): position
            for position in positions
        }
        offsets = [TopicPartition(*key, position.offset) for key, position in wanted.items()]
        for message in read_first_records(self._consumer, offsets, deadline):
            position = wanted[message.topic() or "", message.partition() or 0]
            self._known[position] = HeadRecord.of(position.topic, message)


def _to_datetime(milliseconds: int) -> datetime:
    """Whoever produced the record chose its timestamp, so it may be anything."""
    try:
        return datetime.fromtimestamp(max(0, milliseconds) / 1000, UTC)
    except (OverflowError, ValueError):
        return _LATEST


def _offset(answer: Future[ListOffsetsResultInfo], deadline: Deadline) -> int:
    info = _result(answer, deadline)
    if is_unknown(info):
        raise KafkaUnavailableError("a broker does not report the offsets of its partitions")
    return info.offset


def _description(answer: Future[TopicDescription], deadline: Deadline) -> TopicDescription | None:
    try:
        return _result(answer, deadline)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise


def _result(future: Future[_T], deadline: Deadline) -> _T:
    return future.result(deadline.left())
