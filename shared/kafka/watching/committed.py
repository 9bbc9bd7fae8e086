"""How far groups are, asked as a member of each would ask, without joining it.

Not by the admin client: `list_consumer_group_offsets` of librdkafka 2.16 crashes the process while a coordinator moves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from time import sleep

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from shared.kafka import clients
from shared.kafka.commits import committed_at
from shared.kafka.watching.deadline import Deadline
from shared.settings import KafkaSettings

_COORDINATOR_MOVES = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
_ASK_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True)
class Committed:
    offset: int | None
    """None when the group never committed there."""
    at: datetime | None


class GroupOffsets:
    """One small client for each group, all connecting at once."""

    def __init__(self, settings: KafkaSettings, groups: Iterable[str]) -> None:
        self._clients = {group: clients.consumer(settings, group) for group in groups}

    def of(self, group: str, topic: str, partitions: int, deadline: Deadline) -> Mapping[int, Committed]:
        """Of each partition; `topic` with its prefix."""
        places = [TopicPartition(topic, number) for number in range(partitions)]
        client = self._clients[group]
        _hear(client)
        return {answer.partition: _committed(answer) for answer in _ask(client, places, deadline)}

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


def _ask(client: Consumer, places: list[TopicPartition], deadline: Deadline) -> list[TopicPartition]:
    """Again while the group's coordinator is being found: the first question of a new cluster makes it."""
    while True:
        try:
            return client.committed(places, deadline.left())
        except KafkaException as error:
            if error.args[0].code() not in _COORDINATOR_MOVES:
                raise
            sleep(min(_ASK_AGAIN_S, deadline.left()))


def _hear(client: Consumer) -> None:
    """What it has to say of brokers would pile up otherwise; nothing of it matters here."""
    while client.consume(100, 0):
        pass


def _committed(answer: TopicPartition) -> Committed:
    if answer.error is not None:
        raise KafkaException(answer.error)
    if answer.offset < 0:
        return Committed(None, None)
    return Committed(answer.offset, committed_at(answer.metadata))
