"""Consumer groups: their committed offsets, their state and members."""

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from struct import Struct
from time import sleep
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from shared.platform.kafka import clients
from shared.platform.kafka.assignment import parse_commit_time
from shared.platform.kafka.clients import Deadline
from shared.platform.kafka.inspection.snapshot import GroupMember
from shared.platform.settings import KafkaSettings

_COORDINATOR_MOVES = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
_RETRY_S = 0.1
_SHORT = Struct(">h")
_INT = Struct(">i")


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    offset: int | None
    """None when the group never committed there."""
    at: datetime | None


class CommittedOffsetReader:
    """Reads the committed offsets of groups with one small consumer for each, which never joins its group.

    Not with the admin client: `list_consumer_group_offsets` of librdkafka 2.16 crashes the process while a
    coordinator moves.
    """

    def __init__(self, settings: KafkaSettings, groups: Iterable[str]) -> None:
        self._clients = {group: clients.consumer(settings, group) for group in groups}

    def fetch(
        self, group: str, topic: str, partitions: int, deadline: Deadline
    ) -> Mapping[int, CommittedOffset]:
        """Return the committed offset of each partition; `topic` is named with its prefix."""
        wanted = [TopicPartition(topic, number) for number in range(partitions)]
        client = self._clients[group]
        _drain_events(client)
        return {tp.partition: _committed_offset(tp) for tp in _fetch_committed(client, wanted, deadline)}

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


@dataclass(frozen=True, slots=True)
class GroupMembership:
    state: str = "dead"
    """The default is that of a group that Kafka does not know."""
    members: tuple[GroupMember, ...] = ()


def fetch_memberships(
    admin: AdminClient, topics: dict[str, str], deadline: Deadline
) -> dict[str, GroupMembership]:
    """Return state and members of the wanted groups that Kafka knows. `topics` maps each group to its topic."""
    fetch_memberships = {}
    for group in admin.list_groups(timeout=deadline.left()):
        name = str(group.id)
        if name not in topics:
            continue
        if group.error is not None:
            raise KafkaException(group.error)
        fetch_memberships[name] = GroupMembership(
            # PreparingRebalance
            re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(group.state)).lower(),
            tuple(
                GroupMember(
                    id=str(member.id),
                    client_id=str(member.client_id),
                    host=str(member.client_host).removeprefix("/"),
                    partitions=decode_assignment(cast("bytes", member.assignment), topics[name]),
                )
                for member in group.members
            ),
        )
    return fetch_memberships


def decode_assignment(assignment: bytes, topic: str) -> tuple[int, ...]:
    """Return the partitions of `topic` in the bytes that Kafka calls a consumer protocol assignment.

    Decoded by hand, because no call of the library that decodes it is safe. The bytes come from a client: if they
    cannot be decoded, there are no partitions.
    """
    try:
        return tuple(sorted(partition for name, partition in _entries(assignment) if name == topic))
    except (struct.error, UnicodeDecodeError):
        return ()


def _entries(assignment: bytes) -> Iterator[tuple[str, int]]:
    at = _SHORT.size  # after the version
    topics, at = _read_number(_INT, assignment, at)
    for _ in range(topics):
        length, at = _read_number(_SHORT, assignment, at)
        name, at = assignment[at : at + length].decode(), at + length
        partitions, at = _read_number(_INT, assignment, at)
        for _ in range(partitions):
            partition, at = _read_number(_INT, assignment, at)
            yield name, partition


def _read_number(kind: Struct, data: bytes, at: int) -> tuple[int, int]:
    """Return the number at this position, and the position after it."""
    return int(kind.unpack_from(data, at)[0]), at + kind.size


def _fetch_committed(
    client: Consumer, wanted: list[TopicPartition], deadline: Deadline
) -> list[TopicPartition]:
    """Retry while the group's coordinator is being found: the first request in a new cluster creates it."""
    while True:
        try:
            return client.committed(wanted, deadline.left())
        except KafkaException as error:
            if error.args[0].code() not in _COORDINATOR_MOVES:
                raise
            sleep(min(_RETRY_S, deadline.left()))


def _drain_events(client: Consumer) -> None:
    """Discard the client's events about brokers, which would pile up otherwise."""
    while client.consume(100, 0):
        pass


def _committed_offset(found: TopicPartition) -> CommittedOffset:
    if found.error is not None:
        raise KafkaException(found.error)
    if found.offset < 0:
        return CommittedOffset(None, None)
    return CommittedOffset(found.offset, parse_commit_time(found.metadata))
