"""Notices when a topic was deleted and made again under its consumer, and lets it read the new one from the beginning.

The client tells topics by their names and goes on at its old offset: it skips what the new one has before that. If
there is nothing behind it, the consumer seems to be at the end, and to all others everything is still in line, for the
group's committed offset went with the old topic.
"""

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from time import monotonic

from confluent_kafka import Consumer, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import TopicDescription

from shared.platform.kafka.admin import LastingAdmin
from shared.platform.kafka.records import Lane

_log = logging.getLogger(__name__)
_LOOK_EVERY_S = 2.0
_TIMEOUT_S = 10.0


class MadeAgain:
    def __init__(self, admin: LastingAdmin, topics: Sequence[str]) -> None:
        self._admin = admin
        self._topics = TopicCollection(list(topics))
        self._ask()

    def look_when_due(self, consumer: Consumer, lanes: Sequence[Lane]) -> bool:
        """Whether some lane begins again. Waits for nothing: what it asks for now, it reads the next time.

        So what a new lane hears first was asked for before it was there, or soon after.
        """
        if monotonic() < self._next_at:
            return False
        if not all(answer.done() for answer in self._answers.values()):
            if monotonic() > self._next_at + _TIMEOUT_S:  # nobody will answer: the client was made anew
                self._ask()
            return False
        ids = {topic: _id(answer) for topic, answer in self._answers.items()}
        if any(ids.values()):
            self._admin.answered()
        began = [_begins_again(consumer, lane, ids.get(lane.topic)) for lane in lanes]
        self._ask()
        return any(began)

    def _ask(self) -> None:
        self._next_at = monotonic() + _LOOK_EVERY_S
        self._answers: Mapping[str, Future[TopicDescription]] = self._admin.client().describe_topics(
            self._topics, request_timeout=_TIMEOUT_S
        )


def _begins_again(consumer: Consumer, lane: Lane, topic_id: str | None) -> bool:
    if topic_id is None or topic_id == lane.topic_id:
        return False
    if lane.topic_id is None:
        lane.topic_id = topic_id
        return False
    name = f"{lane.topic}/{lane.partition}"
    try:
        # Not OFFSET_BEGINNING: that is asked for first, and where the answer is an error the client gives up.
        consumer.seek(TopicPartition(lane.topic, lane.partition, 0))
    except KafkaException as error:
        _log.warning("%s was made again, but cannot be read from the beginning yet: %s", name, error)
        return False
    _log.warning("%s was made again, and is read from the beginning", name)
    lane.begin_again(topic_id)
    return True


def _id(answer: Future[TopicDescription]) -> str | None:
    """As text, for two Uuid objects are never equal. None while the topic is missing, or Kafka is away."""
    try:
        return str(answer.result().topic_id)
    except KafkaException:
        return None
