"""Creates missing topics, and finds topics that are missing or differ from their definition."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import NoReturn, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicMetadata,
)
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_delay,
    wait_fixed,
)

from shared.platform.kafka import clients
from shared.platform.kafka.admin import LATEST
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.refusals import explain
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings

_T = TypeVar("_T")
_TIMEOUT_S = 10.0


class TopicsDifferError(Exception):
    """Topics are missing or differ from their definitions. An operator must decide what to do."""

    def __init__(self, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__("topics differ from their definitions:\n  " + "\n  ".join(differences))


def check_topics(settings: KafkaSettings, topics: Sequence[Topic]) -> None:
    """Change nothing; raises TopicsDifferError if topics are missing or differ, and KafkaUnavailableError."""
    admin = clients.admin(settings, "topics")
    existing = _existing(admin, settings)
    names = {clients.topic_name(settings, topic.name): topic for topic in topics}
    missing = [f"{name}: does not exist" for name in names if not _exists(existing, name)]
    there = {name: topic for name, topic in names.items() if _exists(existing, name)}
    differences = [*missing, *(_differences(admin, settings, there) if there else ())]
    if differences:
        raise TopicsDifferError(differences)


def _exists(topics: Mapping[str, TopicMetadata], name: str) -> bool:
    return name in topics and topics[name].error is None


def ensure_topics(settings: KafkaSettings, topics: Sequence[Topic]) -> list[str]:
    """Create missing topics and return their names; raises TopicsDifferError or KafkaUnavailableError."""
    admin = clients.admin(settings, "topics")
    names = {clients.topic_name(settings, topic.name): topic for topic in topics}
    existing = _existing(admin, settings)
    created = _create(admin, settings, {name: topic for name, topic in names.items() if name not in existing})
    if created:
        _await_leaders(
            admin, [TopicPartition(name, n) for name in created for n in range(names[name].partitions)]
        )
    differences = list(_differences(admin, settings, names))
    if differences:
        raise TopicsDifferError(differences)
    return created


def _create(admin: AdminClient, settings: KafkaSettings, missing: Mapping[str, Topic]) -> list[str]:
    """Create all in one request, which takes hardly longer than one topic."""
    copies = settings.replication_factor
    new = [
        NewTopic(name, topic.partitions, copies, config=dict(topic.config(copies)))
        for name, topic in missing.items()
    ]
    answers = admin.create_topics(new, operation_timeout=_TIMEOUT_S) if new else {}
    return [name for name, answer in answers.items() if _was_created(name, answer)]


def _was_created(name: str, answer: Future[None]) -> bool:
    try:
        _result(answer)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:  # another service was faster
            return False
        raise KafkaUnavailableError(f"topic {name} could not be created: {error.args[0].str()}") from error
    return True


def _await_leaders(admin: AdminClient, partitions: Sequence[TopicPartition]) -> None:
    """Wait until the leaders answer: metadata name the leader of a new partition before that broker itself knows."""
    retry = Retrying(
        wait=wait_fixed(0.05),
        stop=stop_after_delay(_TIMEOUT_S),
        retry=retry_if_exception_type(KafkaException),
        reraise=True,
    )
    try:
        retry(_fetch_end_offsets, admin, partitions)
    except KafkaException as error:
        raise KafkaUnavailableError(f"new topics have no leader: {error.args[0].str()}") from error


def _fetch_end_offsets(admin: AdminClient, partitions: Sequence[TopicPartition]) -> None:
    admin.list_topics(timeout=_TIMEOUT_S)  # refreshes what the client knows of leaders
    for answer in admin.list_offsets(dict.fromkeys(partitions, LATEST), request_timeout=_TIMEOUT_S).values():
        _result(answer)


def _differences(admin: AdminClient, settings: KafkaSettings, names: Mapping[str, Topic]) -> Iterable[str]:
    existing = _visible(admin, settings, names)
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    for resource, answer in admin.describe_configs(resources, request_timeout=_TIMEOUT_S).items():
        topic, metadata = names[resource.name], existing[resource.name]
        config = {entry.name: entry.value for entry in _entries(answer).values()}
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


def _entries(answer: Future[dict[str, ConfigEntry]]) -> dict[str, ConfigEntry]:
    try:
        return _result(answer)
    except KafkaException as error:
        raise KafkaUnavailableError(f"topics could not be read: {error.args[0].str()}") from error


def _visible(admin: AdminClient, settings: KafkaSettings, names: Iterable[str]) -> dict[str, TopicMetadata]:
    """Return all topics once these are among them: a new topic takes a moment to be listed."""
    retry = Retrying(
        wait=wait_fixed(0.05),
        stop=stop_after_delay(_TIMEOUT_S),
        retry=retry_if_result(lambda existing: not existing.keys() >= set(names)),
        retry_error_callback=_never_listed,
    )
    return retry(_existing, admin, settings)


def _never_listed(_state: RetryCallState) -> NoReturn:
    raise KafkaUnavailableError(f"new topics were not listed within {_TIMEOUT_S:g} s")


def _existing(admin: AdminClient, settings: KafkaSettings) -> dict[str, TopicMetadata]:
    try:
        return admin.list_topics(timeout=_TIMEOUT_S).topics
    except KafkaException as error:
        admin.poll(0)  # so that we learn why
        reason = f"{error.args[0].str()}{explain(settings)}"
        raise KafkaUnavailableError(f"Kafka does not answer: {reason}") from error


def _result(future: Future[_T]) -> _T:
    try:
        return future.result(_TIMEOUT_S)
    except TimeoutError as error:
        raise KafkaUnavailableError(f"Kafka did not answer within {_TIMEOUT_S:g} s") from error
