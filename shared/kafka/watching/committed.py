"""How far groups are, asked as a member of each would ask, without joining it.

Not by the admin client: `list_consumer_group_offsets` of librdkafka 2.16 crashes the process while a coordinator moves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from confluent_kafka import Consumer, KafkaException, TopicPartition

from shared.kafka import clients
from shared.kafka.commits import committed_at
from shared.kafka.watching.deadline import Deadline
from shared.settings import KafkaSettings


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
        return {answer.partition: _committed(answer) for answer in client.committed(places, deadline.left())}

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


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
