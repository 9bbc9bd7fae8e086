"""The last step, always: tells Kafka how far each partition is done without a gap."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from shared.platform.kafka.assignment import Lanes
from shared.platform.kafka.records import Lane

_log = logging.getLogger(__name__)
_EVERY_S = 0.5
_UNKNOWN = -1
"""No offset, so it differs from whatever is to be committed. None would mean that nothing was read."""


class Commits:
    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._next_at = 0.0

    def commit_when_due(self, consumer: Consumer) -> None:
        if monotonic() < self._next_at:
            return
        self._next_at = monotonic() + _EVERY_S
        behind = [lane for lane in self._lanes.all() if lane.position not in (None, lane.committed)]
        if behind:
            consumer.commit(offsets=_offsets(behind), asynchronous=True)
            for lane in behind:
                lane.committed = lane.position

    def reported(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """How a commit went. One that failed, as some do during a rebalance, is sent again."""
        for partition in partitions:
            lane = self._lanes.of(partition.topic, partition.partition)
            if lane is not None and (error is not None or partition.error is not None):
                lane.committed = _UNKNOWN

    def commit_now(self, consumer: Consumer, lanes: Sequence[Lane]) -> bool:
        """Before partitions go away; whether it went well. If not, the next owner does some records again."""
        started = [lane for lane in lanes if lane.position is not None]
        if not started:
            return True
        try:
            answers = consumer.commit(offsets=_offsets(started), asynchronous=False)
        except KafkaException as error:
            _log.warning("offsets could not be committed: %s", error)
            return False
        return not any(partition.error for partition in answers or [])


def committed_at(metadata: str | None) -> datetime | None:
    """When a commit was made, as whoever made it noted beside the offset; None where nobody did."""
    try:
        at = datetime.fromisoformat(metadata or "")
    except ValueError:
        return None
    return at if at.tzinfo else None


def _offsets(lanes: Sequence[Lane]) -> list[TopicPartition]:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return [TopicPartition(lane.topic, lane.partition, lane.position or 0, metadata=now) for lane in lanes]
