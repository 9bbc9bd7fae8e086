"""Measures the backlog of topics: the age of the oldest record that its consumer group has not consumed.

What has waited no longer than that may still be on its topic. What has waited longer is lost.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from shared.platform.kafka import clients
from shared.platform.kafka.clients import Deadline
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.inspection.groups import CommittedOffsetReader
from shared.platform.kafka.inspection.topics import FIRST_RECORD_ONLY, HeadRecord, read_first_records
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings

_TIMEOUT_S = 5.0


class TopicBacklog:
    """The backlog of topics and their consumer groups. Connects for each measurement, because these are rare."""

    def __init__(self, settings: KafkaSettings, topics: Sequence[Topic]) -> None:
        self._settings = settings
        self._topics = {clients.topic_name(settings, topic.name): topic for topic in topics}

    def oldest_age_s(self, now: float) -> float:
        """Return the age at `now` (seconds since 1970) of the oldest record not consumed; 0 if there is none.

        Raises KafkaUnavailableError within seconds. It starts reading where a consumer of the group would: at the
        committed offset, or at the first record if that offset is gone, because retention removed it or the topic was
        recreated. It does not join the group.
        """
        deadline = Deadline(_TIMEOUT_S)
        at = datetime.fromtimestamp(now, UTC)
        try:
            with (
                closing(
                    CommittedOffsetReader(self._settings, [_group(topic) for topic in self._topics.values()])
                ) as groups,
                closing(clients.consumer(self._settings, "backlog", None, **FIRST_RECORD_ONLY)) as reader,
            ):
                positions = list(self._positions(groups, reader, deadline))
                return max(
                    (
                        HeadRecord.of(self._topics[str(record.topic())], record).waiting_s(at)
                        for record in read_first_records(reader, positions, deadline)
                    ),
                    default=0.0,
                )
        except (KafkaException, KafkaUnavailableError) as error:
            raise KafkaUnavailableError(f"the backlog cannot be measured: {error}") from error

    def _positions(
        self, groups: CommittedOffsetReader, reader: Consumer, deadline: Deadline
    ) -> Iterator[TopicPartition]:
        """Yield where each group would start reading. Topics that do not exist are skipped."""
        for name, topic in self._topics.items():
            found = reader.list_topics(name, timeout=deadline.left()).topics[name]
            if found.error is not None:
                if found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise KafkaException(found.error)
            committed = groups.fetch(_group(topic), name, len(found.partitions), deadline)
            for number, position in committed.items():
                offset = OFFSET_BEGINNING if position.offset is None else position.offset
                yield TopicPartition(name, number, offset)


def _group(topic: Topic) -> str:
    assert topic.group is not None
    return topic.group
