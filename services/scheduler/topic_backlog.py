"""How old the oldest record is that nobody has consumed: what has waited no longer than that may still be in line."""

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
    """Of topics and the groups that consume them. Holds nothing between two looks, which are rare."""

    def __init__(self, settings: KafkaSettings, topics: Sequence[Topic]) -> None:
        self._settings = settings
        self._topics = {clients.topic_name(settings, topic.name): topic for topic in topics}

    def oldest_s(self, now: float) -> float:
        """At `now`, in seconds since 1970; 0 when all is consumed. Raises KafkaUnavailableError within seconds.

        A consumer begins where its group has committed, or at the first record where that place is gone: retention
        took it, or the topic was deleted and made again. So does the one here, without joining the group.
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
                places = list(self._places(groups, reader, deadline))
                return max(
                    (
                        HeadRecord.of(self._topics[str(record.topic())], record).waiting_s(at)
                        for record in read_first_records(reader, places, deadline)
                    ),
                    default=0.0,
                )
        except (KafkaException, KafkaUnavailableError) as error:
            raise KafkaUnavailableError(f"the backlog is not known: {error}") from error

    def _places(
        self, groups: CommittedOffsetReader, reader: Consumer, deadline: Deadline
    ) -> Iterator[TopicPartition]:
        """Where each group would begin. A topic that does not exist has none."""
        for name, topic in self._topics.items():
            found = reader.list_topics(name, timeout=deadline.left()).topics[name]
            if found.error is not None:
                if found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise KafkaException(found.error)
            committed = groups.fetch(_group(topic), name, len(found.partitions), deadline)
            for number, place in committed.items():
                offset = OFFSET_BEGINNING if place.offset is None else place.offset
                yield TopicPartition(name, number, offset)


def _group(topic: Topic) -> str:
    assert topic.group is not None
    return topic.group
