"""Who is in the groups now.

By the older of two calls: `describe_consumer_groups` of librdkafka 2.16 aborts the process when it runs out of time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct, error
from typing import cast

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from shared.kafka.watching.deadline import Deadline
from shared.kafka.watching.views import MemberView

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
