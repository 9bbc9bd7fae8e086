"""Makes the topics that are missing, and refuses those that differ from their definition."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import NoReturn, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType, TopicMetadata
from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_delay, wait_fixed

from shared.kafka import clients
from shared.kafka.clients import KafkaUnavailableError
from shared.settings import KafkaSettings
from shared.topics import Topic

_T = TypeVar("_T")
_TIMEOUT_S = 10.0


class TopicsDifferError(Exception):
    """Topics exist that are not as defined; an operator must decide, we use none of them silently."""

    def __init__(self, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__("topics differ from their definitions:\n  " + "\n  ".join(differences))


def ensure_topics(settings: KafkaSettings, topics: Sequence[Topic]) -> list[str]:
    """Creates what is missing, returning those names; raises TopicsDifferError when what is there differs."""
    admin = clients.admin(settings, "topics")
    names = {clients.topic_name(settings, topic.name): topic for topic in topics}
    existing = _existing(admin)
    made = [name for name, topic in names.items() if name not in existing and _create(admin, settings, topic)]
    differences = list(_differences(admin, settings, names))
    if differences:
        raise TopicsDifferError(differences)
    return made


def _create(admin: AdminClient, settings: KafkaSettings, topic: Topic) -> bool:
    name = clients.topic_name(settings, topic.name)
    new = NewTopic(
        name,
        num_partitions=topic.partitions,
        replication_factor=settings.replication_factor,
        config=dict(topic.config(settings.replication_factor)),
    )
    try:
        _answer(admin.create_topics([new], operation_timeout=_TIMEOUT_S)[name])
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:  # another service was faster
            return False
        raise KafkaUnavailableError(f"topic {name} could not be made: {error.args[0].str()}") from error
    return True


def _differences(admin: AdminClient, settings: KafkaSettings, names: Mapping[str, Topic]) -> Iterable[str]:
    existing = _visible(admin, names)
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    for resource, answer in admin.describe_configs(resources, request_timeout=_TIMEOUT_S).items():
        topic, metadata = names[resource.name], existing[resource.name]
        config = {entry.name: entry.value for entry in _answer(answer).values()}
        wanted: dict[str, object] = {
            "partitions": topic.partitions,
            "replication factor": settings.replication_factor,
            **topic.config(settings.replication_factor),
        }
        found: dict[str, object] = {
            "partitions": len(metadata.partitions),
            "replication factor": len(metadata.partitions[0].replicas),
            **config,
        }
        for what, value in wanted.items():
            if found.get(what) != value:
                yield f"{resource.name}: {what} is {found.get(what)}, should be {value}"


def _visible(admin: AdminClient, names: Iterable[str]) -> dict[str, TopicMetadata]:
    """All topics, once these are among them: a topic that was just made takes a moment to be seen."""
    look = Retrying(
        wait=wait_fixed(0.05),
        stop=stop_after_delay(_TIMEOUT_S),
        retry=retry_if_result(lambda existing: not existing.keys() >= set(names)),
        retry_error_callback=_never_seen,
    )
    return look(_existing, admin)


def _never_seen(_state: RetryCallState) -> NoReturn:
    raise KafkaUnavailableError(f"topics that were made did not show up within {_TIMEOUT_S:g} s")


def _existing(admin: AdminClient) -> dict[str, TopicMetadata]:
    try:
        return admin.list_topics(timeout=_TIMEOUT_S).topics
    except KafkaException as error:
        raise KafkaUnavailableError(f"Kafka does not answer: {error.args[0].str()}") from error


def _answer(future: Future[_T]) -> _T:
    try:
        return future.result(_TIMEOUT_S)
    except TimeoutError as error:
        raise KafkaUnavailableError(f"Kafka did not answer within {_TIMEOUT_S:g} s") from error
