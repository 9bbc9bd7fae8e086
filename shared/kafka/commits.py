"""The last step, always: tells Kafka how far each partition is done without a gap."""

import logging
from collections.abc import Sequence
from time import monotonic

from confluent_kafka import Consumer, KafkaException, TopicPartition

from shared.kafka.tasks import Lane

_log = logging.getLogger(__name__)
_EVERY_S = 0.5


class Commits:
    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._next_at = 0.0

    def commit_when_due(self, lanes: Sequence[Lane]) -> None:
        if monotonic() < self._next_at:
            return
        self._next_at = monotonic() + _EVERY_S
        behind = [lane for lane in lanes if lane.position != lane.committed]
        if behind:
            self._consumer.commit(offsets=_offsets(behind), asynchronous=True)
            for lane in behind:
                lane.committed = lane.position

    def commit_now(self, lanes: Sequence[Lane]) -> None:
        """Before partitions go away. Where it fails, the next owner does some records again; none is lost."""
        started = [lane for lane in lanes if lane.position is not None]
        if not started:
            return
        try:
            # All of them, not only what is behind: nobody waited to hear how the last commits went.
            self._consumer.commit(offsets=_offsets(started), asynchronous=False)
        except KafkaException as error:
            _log.warning("offsets could not be committed: %s", error)


def _offsets(lanes: Sequence[Lane]) -> list[TopicPartition]:
    return [TopicPartition(lane.topic, lane.partition, lane.position or 0) for lane in lanes]
