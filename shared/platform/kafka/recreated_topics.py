"""Detects topics that were deleted and recreated while they are consumed, and reads the new ones from the beginning.

The client knows topics by their names and continues at its old offset, so it skips the first records of the new topic.
If there is nothing behind that offset, the consumer believes it is at the end. To everybody else all records are
waiting, because the committed offset of the group was deleted with the old topic.
"""

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from time import monotonic

from confluent_kafka import Consumer, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import TopicDescription

from shared.platform.kafka.admin import ReconnectingAdmin
from shared.platform.kafka.records import AssignedPartition

_log = logging.getLogger(__name__)
_CHECK_EVERY_S = 5.0
_TIMEOUT_S = 10.0


class RecreatedTopicDetector:
    def __init__(self, admin: ReconnectingAdmin, topics: Sequence[str]) -> None:
        self._admin = admin
        self._topics = TopicCollection(list(topics))
        self._request()

    def check_when_due(self, consumer: Consumer, partitions: Sequence[AssignedPartition]) -> bool:
        """Restart the partitions of recreated topics; return whether there were any.

        It never waits: what it requests now, it reads on the next call. So the first answer for a new partition was
        requested before its assignment or soon after.
        """
        if monotonic() < self._next_at:
            return False
        if not all(answer.done() for answer in self._answers.values()):
            if monotonic() > self._next_at + _TIMEOUT_S:  # the client was replaced: no answer will come
                self._request()
            return False
        ids = {topic: _topic_id(answer) for topic, answer in self._answers.items()}
        if any(ids.values()):
            self._admin.record_answer()
        restarted = [_restart_if_recreated(consumer, each, ids.get(each.topic)) for each in partitions]
        self._request()
        return any(restarted)

    def _request(self) -> None:
        self._next_at = monotonic() + _CHECK_EVERY_S
        self._answers: Mapping[str, Future[TopicDescription]] = self._admin.client().describe_topics(
            self._topics, request_timeout=_TIMEOUT_S
        )


def _restart_if_recreated(consumer: Consumer, partition: AssignedPartition, topic_id: str | None) -> bool:
    if topic_id is None or topic_id == partition.topic_id:
        return False
    if partition.topic_id is None:
        partition.topic_id = topic_id
        return False
    name = f"{partition.topic}/{partition.partition}"
    try:
        # Not OFFSET_BEGINNING: the client would look that up first, and give up if the look-up fails.
        consumer.seek(TopicPartition(partition.topic, partition.partition, 0))
    except KafkaException as error:
        _log.warning(
            "topic of %s was recreated, but it cannot be read from the beginning yet: %s", name, error
        )
        return False
    _log.warning("topic of %s was recreated, reading it from the beginning", name)
    partition.restart(topic_id)
    return True


def _topic_id(answer: Future[TopicDescription]) -> str | None:
    """Return the id as text, because two Uuid objects are never equal; None while topic or Kafka is missing."""
    try:
        return str(answer.result().topic_id)
    except KafkaException:
        return None
