"""Topics as they are now: their ids, and where each partition begins and ends."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, TopicDescription

from shared.platform.kafka import clients
from shared.platform.kafka.clients import Deadline
from shared.platform.kafka.end_offsets import EARLIEST, LATEST, is_unknown
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.inspection.snapshot import PartitionView
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Found:
    id: str
    partitions: int


def find_topics(admin: AdminClient, names: Sequence[str], deadline: Deadline) -> tuple[int, dict[str, Found]]:
    """How many brokers there are, and those topics that exist.

    Listing them lets the client learn the leaders anew: it would go on asking for ends with an epoch that is over.
    """
    metadata = admin.list_topics(timeout=deadline.left())
    answers = admin.describe_topics(TopicCollection(list(names)), request_timeout=deadline.left())
    found = {name: _description(answer, deadline) for name, answer in answers.items()}
    return len(metadata.brokers), {
        name: Found(str(topic.topic_id), len(topic.partitions))
        for name, topic in found.items()
        if topic is not None
    }


def find_ends(
    admin: AdminClient, topics: Mapping[str, Found], deadline: Deadline
) -> dict[str, tuple[PartitionView, ...]]:
    places = [
        TopicPartition(name, number) for name, topic in topics.items() for number in range(topic.partitions)
    ]
    if not places:
        return {}
    lows, highs = (
        admin.list_offsets(dict.fromkeys(places, which), request_timeout=deadline.left())
        for which in (EARLIEST, LATEST)
    )
    views: dict[str, list[PartitionView]] = {name: [] for name in topics}
    for place in places:
        low, high = (_offset(answers[place], deadline) for answers in (lows, highs))
        views[place.topic].append(PartitionView(place.partition, low, max(low, high)))
    return {name: tuple(partitions) for name, partitions in views.items()}


def _offset(answer: Future[ListOffsetsResultInfo], deadline: Deadline) -> int:
    found = _answer(answer, deadline)
    if is_unknown(found):
        raise KafkaUnavailableError("a broker tells nothing of its partitions")
    return found.offset


def _description(answer: Future[TopicDescription], deadline: Deadline) -> TopicDescription | None:
    try:
        return _answer(answer, deadline)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise


def _answer(future: Future[_T], deadline: Deadline) -> _T:
    return future.result(deadline.left())


# Only the first record of each partition is wanted, and the end of one that has none.
FIRST_RECORD_ONLY: dict[str, str | int] = {
    "enable_partition_eof": "true",
    "queued_min_messages": 1,
    "fetch_message_max_bytes": 1024,
    "fetch_wait_max_ms": 10,
    "fetch_error_backoff_ms": 50,
}
_NOTHING_THERE = (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART)  # noqa: SLF001
_LATEST = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Head:
    at: datetime
    due_at: datetime | None

    @classmethod
    def of(cls, topic: Topic, message: Message) -> "Head":
        return cls(_moment(message.timestamp()[1]), topic.due_at(message.value()) if topic.due_at else None)

    def waits_s(self, now: datetime) -> float:
        """How long it could have been done by now; what is not due does not wait yet."""
        return max(0.0, (now - (self.due_at or self.at)).total_seconds())


def first_records(
    consumer: Consumer, places: Sequence[TopicPartition], deadline: Deadline
) -> Iterator[Message]:
    """From each place on, of each that has one. A place that is gone means the first record that is there.

    A consumer that was never subscribed joins no group by this.
    """
    consumer.assign(list(places))
    answered: set[tuple[str, int | None]] = set()
    while len(answered) < len(places):
        message = consumer.poll(deadline.left())
        topic = None if message is None else message.topic()
        if message is None or topic is None or (topic, message.partition()) in answered:
            continue  # silence, news of some broker, or more than was asked for
        error = message.error()
        if error is None:
            yield message
        elif error.code() not in _NOTHING_THERE:
            raise KafkaException(error)
        answered.add((topic, message.partition()))


@dataclass(frozen=True, slots=True)
class Place:
    """`topic_id` tells a topic from one of the same name that was there before."""

    topic: Topic
    topic_id: str
    partition: int
    offset: int


class KnownHeads:
    """Reads a head once, for it stays what it is; those that nobody asks for any more are forgotten."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._consumer = clients.consumer(settings, "watching", None, **FIRST_RECORD_ONLY)
        self._known: dict[Place, Head] = {}

    def of(self, places: Collection[Place], deadline: Deadline) -> dict[Place, Head]:
        """One that vanished in this very moment has none."""
        self._known = {place: self._known[place] for place in places if place in self._known}
        unknown = {place for place in places if place not in self._known}
        try:
            while unknown:
                # A partition can be read at one place at a time.
                each = {(place.topic.name, place.partition): place for place in unknown}
                self._read(list(each.values()), deadline)
                unknown -= set(each.values())
        finally:
            self._consumer.unassign()
        return self._known

    def close(self) -> None:
        self._consumer.close()

    def _read(self, places: Sequence[Place], deadline: Deadline) -> None:
        asked = {
            (clients.topic_name(self._settings, place.topic.name), place.partition): place for place in places
        }
        positions = [TopicPartition(*key, place.offset) for key, place in asked.items()]
        for message in first_records(self._consumer, positions, deadline):
            place = asked[message.topic() or "", message.partition() or 0]
            self._known[place] = Head.of(place.topic, message)


def _moment(milliseconds: int) -> datetime:
    """Whoever produced the record chose it freely."""
    try:
        return datetime.fromtimestamp(max(0, milliseconds) / 1000, UTC)
    except (OverflowError, ValueError):
        return _LATEST
