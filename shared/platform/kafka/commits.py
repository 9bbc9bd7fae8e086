"""Commits offsets, always as the last step: up to where each partition is finished without a gap."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from shared.platform.kafka.assignment import Assignment
from shared.platform.kafka.records import AssignedPartition

_log = logging.getLogger(__name__)
_EVERY_S = 0.5
_UNKNOWN = -1
"""No real offset, so it differs from whatever is to be committed. None would mean that nothing was read."""


class OffsetCommitter:
    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._next_at = 0.0

    def commit_when_due(self, consumer: Consumer) -> None:
        """Twice a second, commit in the background what has changed."""
        if monotonic() < self._next_at:
            return
        self._next_at = monotonic() + _EVERY_S
        behind = [each for each in self._assignment.all() if each.position not in (None, each.committed)]
        if behind:
            consumer.commit(offsets=_offsets(behind), asynchronous=True)
            for partition in behind:
                partition.committed = partition.position

    def on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """Note the result of a commit. A failed one, as happens during a rebalance, is sent again."""
        for each in partitions:
            partition = self._assignment.get(each.topic, each.partition)
            if partition is not None and (error is not None or each.error is not None):
                partition.committed = _UNKNOWN

    def commit_now(self, consumer: Consumer, partitions: Sequence[AssignedPartition]) -> bool:
        """Commit before partitions are revoked, and wait for the result. Return whether it succeeded.

        If it did not, the next owner processes some records again.
        """
        started = [partition for partition in partitions if partition.position is not None]
        if not started:
            return True
        try:
            committed = consumer.commit(offsets=_offsets(started), asynchronous=False)
        except KafkaException as error:
            _log.warning("offsets could not be committed: %s", error)
            return False
        return not any(partition.error for partition in committed or [])


def parse_commit_time(metadata: str | None) -> datetime | None:
    """Return when a commit was made, as its metadata says; None where they do not."""
    try:
        at = datetime.fromisoformat(metadata or "")
    except ValueError:
        return None
    return at if at.tzinfo else None


def _offsets(partitions: Sequence[AssignedPartition]) -> list[TopicPartition]:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return [
        TopicPartition(each.topic, each.partition, each.position or 0, metadata=now) for each in partitions
    ]
