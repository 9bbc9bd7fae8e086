"""How old the oldest record is that nobody has consumed: what has waited no longer than that may still be in line."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from time import monotonic

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from shared.kafka import clients
from shared.kafka.clients import KafkaUnavailableError
from shared.messages import DeliveryDue, UnreadableMessageError, decode
from shared.settings import KafkaSettings
from shared.topics import WEBHOOKS_DELAY, Topic

_TIMEOUT_S = 5.0
# Only the first record of each partition is wanted, and the end of one that has none.
_FIRST_RECORD_ONLY: dict[str, str | int] = {
    "enable_partition_eof": "true",
    "queued_min_messages": 1,
    "fetch_message_max_bytes": 1024,
    "fetch_wait_max_ms": 10,
    "fetch_error_backoff_ms": 50,
}


class Backlog:
    """Of topics and the groups that consume them. Holds nothing between two looks, which are rare."""

    def __init__(self, settings: KafkaSettings, topics: Sequence[Topic]) -> None:
        self._settings = settings
        self._topics = topics

    def oldest_s(self, now: float) -> float:
        """At `now`, in seconds since 1970; 0 when all is consumed. Raises KafkaUnavailableError within seconds.

        A consumer begins where its group has committed, or at the first record where that place is gone: retention
        took it, or the topic was deleted and made again. So the clients here do just that, without joining the group.
        """
        deadline = monotonic() + _TIMEOUT_S
        try:
            with ExitStack() as closing:
                return self._measure(closing, now, deadline)
        except KafkaException as error:
            raise KafkaUnavailableError(f"the backlog is not known: {error}") from error

    def _measure(self, closing: ExitStack, now: float, deadline: float) -> float:
        """All clients connect, and all begin to fetch, before the first answer is waited for."""
        consumers = [(topic, self._consumer(topic, closing)) for topic in self._topics]
        begun = [(topic, consumer, self._begin(topic, consumer, deadline)) for topic, consumer in consumers]
        return max(
            (
                _age_s(topic, record, now)
                for topic, consumer, partitions in begun
                for record in _first_records(consumer, partitions, deadline)
            ),
            default=0.0,
        )

    def _consumer(self, topic: Topic, closing: ExitStack) -> Consumer:
        assert topic.group is not None
        consumer = clients.consumer(self._settings, topic.group, None, **_FIRST_RECORD_ONLY)
        closing.callback(consumer.close)
        return consumer

    def _begin(self, topic: Topic, consumer: Consumer, deadline: float) -> int:
        """Where the group would; returns of how many partitions. A topic that does not exist has none."""
        name = clients.topic_name(self._settings, topic.name)
        found = consumer.list_topics(name, timeout=_left(deadline)).topics[name]
        if found.error is not None:
            if found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return 0
            raise KafkaException(found.error)
        places = [TopicPartition(name, partition) for partition in found.partitions]
        consumer.assign([_place(committed) for committed in consumer.committed(places, _left(deadline))])
        return len(places)


def _place(committed: TopicPartition) -> TopicPartition:
    if committed.error is not None:
        raise KafkaException(committed.error)
    offset = committed.offset if committed.offset >= 0 else OFFSET_BEGINNING
    return TopicPartition(committed.topic, committed.partition, offset)


def _first_records(consumer: Consumer, partitions: int, deadline: float) -> Iterator[Message]:
    """Of each partition that has one."""
    answered: set[int | None] = set()
    while len(answered) < partitions:
        message = consumer.poll(_left(deadline))
        if message is None or message.topic() is None or message.partition() in answered:
            continue  # silence, news of some broker, or more than was asked for
        error = message.error()
        if error is None:
            yield message
        elif error.code() not in (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART):  # noqa: SLF001
            raise KafkaException(error)
        answered.add(message.partition())


def _age_s(topic: Topic, record: Message, now: float) -> float:
    since = record.timestamp()[1] / 1000
    if topic in WEBHOOKS_DELAY:
        try:
            message = decode(record.value())
        except UnreadableMessageError:
            pass  # it waits for nothing but to be put into the dead letters
        else:
            since = message.due_at.timestamp() if isinstance(message, DeliveryDue) else since
    return max(0.0, now - since)


def _left(deadline: float) -> float:
    left = deadline - monotonic()
    if left <= 0:
        raise KafkaUnavailableError(f"the backlog is not known: no answer within {_TIMEOUT_S:g} s")
    return left
