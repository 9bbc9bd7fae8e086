"""Topics as they are now: their ids, and where each partition begins and ends."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, TopicDescription

from shared.kafka.asked_ends import EARLIEST, LATEST, is_unknown
from shared.kafka.clients import KafkaUnavailableError
from shared.kafka.watching.deadline import Deadline
from shared.kafka.watching.views import PartitionView

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Found:
    id: str
    partitions: int


def find_topics(admin: AdminClient, names: Sequence[str], deadline: Deadline) -> tuple[int, dict[str, Found]]:
    """How many brokers there are, and those topics that exist.

    Listing them lets the client learn the leaders anew: it would go on asking for ends with an epoch that is over.
    """
    metadata = admin.list_topics(timeout=deadline.left())
    answers = admin.describe_topics(TopicCollection(list(names)), request_timeout=deadline.left())
    found = {name: _description(answer, deadline) for name, answer in answers.items()}
    return len(metadata.brokers), {
        name: Found(str(topic.topic_id), len(topic.partitions))
        for name, topic in found.items()
        if topic is not None
    }


def find_ends(
    admin: AdminClient, topics: Mapping[str, Found], deadline: Deadline
) -> dict[str, tuple[PartitionView, ...]]:
    places = [
        TopicPartition(name, number) for name, topic in topics.items() for number in range(topic.partitions)
    ]
    if not places:
        return {}
    lows, highs = (
        admin.list_offsets(dict.fromkeys(places, which), request_timeout=deadline.left())
        for which in (EARLIEST, LATEST)
    )
    views: dict[str, list[PartitionView]] = {name: [] for name in topics}
    for place in places:
        low, high = (_offset(answers[place], deadline) for answers in (lows, highs))
        views[place.topic].append(PartitionView(place.partition, low, max(low, high)))
    return {name: tuple(partitions) for name, partitions in views.items()}


def _offset(answer: Future[ListOffsetsResultInfo], deadline: Deadline) -> int:
    found = _answer(answer, deadline)
    if is_unknown(found):
        raise KafkaUnavailableError("a broker tells nothing of its partitions")
    return found.offset


def _description(answer: Future[TopicDescription], deadline: Deadline) -> TopicDescription | None:
    try:
        return _answer(answer, deadline)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise


def _answer(future: Future[_T], deadline: Deadline) -> _T:
    return future.result(deadline.left())
