"""The first record at a place in a partition: when it was produced and, in a delay topic, when it is due."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from shared.kafka import clients
from shared.kafka.watching.deadline import Deadline
from shared.messages import DeliveryDue, UnreadableMessageError, decode
from shared.settings import KafkaSettings
from shared.topics import WEBHOOKS_DELAY, Topic

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
        return cls(_moment(message.timestamp()[1]), _due_at(message) if topic in WEBHOOKS_DELAY else None)

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


def _due_at(message: Message) -> datetime | None:
    """None for what cannot be read: it waits for nothing but to be put into the dead letters."""
    try:
        due = decode(message.value())
    except UnreadableMessageError:
        return None
    if not isinstance(due, DeliveryDue):
        return None
    return due.due_at if due.due_at.tzinfo else due.due_at.replace(tzinfo=UTC)


def _moment(milliseconds: int) -> datetime:
    """Whoever produced the record chose it freely."""
    try:
        return datetime.fromtimestamp(max(0, milliseconds) / 1000, UTC)
    except (OverflowError, ValueError):
        return _LATEST
