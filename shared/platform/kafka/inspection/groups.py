"""How far groups are, asked as a member of each would ask, without joining it.

Not by the admin client: `list_consumer_group_offsets` of librdkafka 2.16 crashes the process while a coordinator moves.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from struct import Struct, error
from time import sleep
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from shared.platform.kafka import clients
from shared.platform.kafka.clients import Deadline
from shared.platform.kafka.commits import committed_at
from shared.platform.kafka.inspection.snapshot import MemberView
from shared.platform.settings import KafkaSettings

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


_SHORT = Struct(">h")
_INT = Struct(">i")


@dataclass(frozen=True, slots=True)
class Membership:
    state: str = "dead"
    """As of a group that Kafka knows nothing of."""
    members: tuple[MemberView, ...] = ()


def memberships(admin: AdminClient, topics: dict[str, str], deadline: Deadline) -> dict[str, Membership]:
    """Of the groups that Kafka knows, of those wanted: `topics` says of each which topic it consumes."""
    found = {}
    for group in admin.list_groups(timeout=deadline.left()):
        name = str(group.id)
        if name not in topics:
            continue
        if group.error is not None:
            raise KafkaException(group.error)
        found[name] = Membership(
            # PreparingRebalance
            re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(group.state)).lower(),
            tuple(
                MemberView(
                    id=str(member.id),
                    client_id=str(member.client_id),
                    host=str(member.client_host).removeprefix("/"),
                    partitions=assigned(cast("bytes", member.assignment), topics[name]),
                )
                for member in group.members
            ),
        )
    return found


def assigned(assignment: bytes, topic: str) -> tuple[int, ...]:
    """The partitions of `topic` in what Kafka calls a consumer protocol assignment.

    Written by hand, for no call of the library's that reads it is safe; it is a client's own bytes, so what cannot be
    read means none.
    """
    try:
        return tuple(sorted(partition for name, partition in _entries(assignment) if name == topic))
    except (error, UnicodeDecodeError):
        return ()


def _entries(assignment: bytes) -> Iterator[tuple[str, int]]:
    at = _SHORT.size  # after the version
    topics, at = _number(_INT, assignment, at)
    for _ in range(topics):
        length, at = _number(_SHORT, assignment, at)
        name, at = assignment[at : at + length].decode(), at + length
        partitions, at = _number(_INT, assignment, at)
        for _ in range(partitions):
            partition, at = _number(_INT, assignment, at)
            yield name, partition


def _number(kind: Struct, data: bytes, at: int) -> tuple[int, int]:
    """And where to read on."""
    return int(kind.unpack_from(data, at)[0]), at + kind.size
