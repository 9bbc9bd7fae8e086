"""Each principal tries everything on a real broker: what the declaration lists works, and all else is refused.

The cases are every principal with every topic (produce and consume) and every group, and what only the admin may do.
"""

from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any, TypeVar

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from shared.domain.kafka_principals import ADMIN, ALL_PRINCIPALS
from shared.domain.topics import ALL_TOPICS, WEBHOOKS_DELIVER
from shared.platform.kafka import clients
from shared.platform.kafka.access import Principal
from shared.platform.kafka.producer import ConfirmingProducer, NotConfirmedError, OutgoingRecord, raise_after
from shared.platform.kafka.refusals import AUTHORIZATION_ERRORS
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings
from tests.engines import TestEngines
from tests.topics import commit_offset
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("has_access_control")

KafkaAs = Callable[[Principal], KafkaSettings]
OTHERS = [principal for principal in ALL_PRINCIPALS if principal is not ADMIN]
_TIMEOUT_S = 30
_T = TypeVar("_T")


def of_all(each: Callable[[Principal], _T], principals: Collection[Principal]) -> dict[str, _T]:
    """Let all principals try at once."""
    with ThreadPoolExecutor(len(principals)) as pool:
        return dict(zip((one.name for one in principals), pool.map(each, principals), strict=True))


def produced(settings: KafkaSettings) -> set[str]:
    """Return the topics that this principal may produce to."""
    with closing(ConfirmingProducer(settings, "proof")) as producer:
        refused: dict[int, KafkaError] = {}
        try:
            producer.send(
                [OutgoingRecord(topic.name, b"k", b"v") for topic in ALL_TOPICS],
                on_wait=raise_after(_TIMEOUT_S),
            )
        except NotConfirmedError as error:
            refused = error.refused
    assert {error.code() for error in refused.values()} <= {KafkaError.TOPIC_AUTHORIZATION_FAILED}
    return {topic.name for index, topic in enumerate(ALL_TOPICS) if index not in refused}


def consumed(settings: KafkaSettings) -> set[str]:
    """Return the topics that this principal may read from. It joins no group."""
    consumer = clients.consumer(settings, "watching", enable_partition_eof="true")
    names = {clients.topic_name(settings, topic.name): topic.name for topic in ALL_TOPICS}
    # A client that may not even see a topic waits for it without a word.
    answers = {name: False for name in names if _is_hidden(consumer, name)}
    consumer.assign([TopicPartition(name, 0, 0) for name in names])

    def has_all_answers() -> bool:
        for message in consumer.consume(100, 0.2):
            name, error = message.topic(), message.error()
            if name is None:
                continue  # about its group, which it does not join
            if error is None or error.code() == KafkaError._PARTITION_EOF:
                answers[name] = True
            elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                answers[name] = False
        return answers.keys() == names.keys()

    try:
        eventually(has_all_answers)
    finally:
        consumer.close()
    return {names[name] for name, is_allowed in answers.items() if is_allowed}


def _is_hidden(consumer: Consumer, topic: str) -> bool:
    error = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].error
    return error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def visible_groups(settings: KafkaSettings) -> set[str]:
    """Return the groups of this test that the principal may look at."""
    admin = clients.admin(settings, "proof")
    found = {str(group.id) for group in admin.list_groups(timeout=_TIMEOUT_S)}
    return {
        name.removeprefix(settings.topic_prefix) for name in found if name.startswith(settings.topic_prefix)
    }


def commit_in_all_groups(settings: KafkaSettings) -> None:
    """Commit an offset in each group, so that it exists."""
    for topic in ALL_TOPICS:
        if topic.group:
            commit_offset(
                settings, topic.group, TopicPartition(clients.topic_name(settings, topic.name), 0, 0)
            )


def joinable_groups(settings: KafkaSettings) -> set[str]:
    """Return the groups that this principal may join."""
    return {topic.group for topic in ALL_TOPICS if topic.group and _may_join(settings, topic.group, topic)}


def _may_join(settings: KafkaSettings, group: str, topic: Topic) -> bool:
    """A member without its topic joins, and gets no partition: so the assignment may be empty."""
    consumer = clients.consumer(settings, group)
    joined: list[object] = []
    consumer.subscribe(
        [clients.topic_name(settings, topic.name)], on_assign=lambda _, partitions: joined.append(partitions)
    )

    def is_answered() -> bool | None:
        message = consumer.poll(0.2)
        error = None if message is None else message.error()
        if joined:
            return True
        return error is not None and error.code() in AUTHORIZATION_ERRORS

    try:
        eventually(is_answered)
    finally:
        consumer.close()
    return bool(joined)


def test_every_principal_tries_to_produce_to_every_topic(
    all_topics: KafkaSettings, kafka_as: KafkaAs
) -> None:
    found = of_all(lambda one: produced(kafka_as(one)), OTHERS)
    assert found == {one.name: {topic.name for topic in one.produces} for one in OTHERS}


def test_every_principal_tries_to_consume_every_topic(all_topics: KafkaSettings, kafka_as: KafkaAs) -> None:
    found = of_all(lambda one: consumed(kafka_as(one)), OTHERS)
    assert found == {one.name: {topic.name for topic in (*one.consumes, *one.reads)} for one in OTHERS}


def test_every_principal_tries_every_consumer_group(all_topics: KafkaSettings, kafka_as: KafkaAs) -> None:
    """To join it, and to look at its offsets."""
    joined = of_all(lambda one: joinable_groups(kafka_as(one)), OTHERS)
    assert joined == {one.name: {topic.group for topic in one.consumes} for one in OTHERS}
    commit_in_all_groups(kafka_as(ADMIN))
    seen = of_all(lambda one: visible_groups(kafka_as(one)), OTHERS)
    assert seen == {one.name: {*one.inspects_groups, *joined[one.name]} for one in OTHERS}


def _admin_actions(admin: AdminClient, topic: str) -> dict[str, Callable[[], "dict[Any, Future[Any]]"]]:
    """Return everything that only the admin may do."""
    config = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)],
    )
    acl = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:mizan-nobody",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    password = UserScramCredentialUpsertion(
        "mizan-nobody", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"a long password"
    )
    return {
        "create a topic": lambda: admin.create_topics([NewTopic(f"{topic}.new", 1, 1)]),
        "add partitions": lambda: admin.create_partitions([NewPartitions(topic, 20)]),
        "change a configuration": lambda: admin.incremental_alter_configs([config]),
        "delete records": lambda: admin.delete_records([TopicPartition(topic, 0, 0)]),
        "create an ACL": lambda: admin.create_acls([acl]),
        "set a password": lambda: admin.alter_user_scram_credentials([password]),
        "delete the topic": lambda: admin.delete_topics([topic]),
    }


def _refused(action: Callable[[], "dict[Any, Future[Any]]"]) -> bool:
    (answer,) = action().values()
    error = answer.exception(_TIMEOUT_S)
    if error is None:
        return False
    assert isinstance(error, KafkaException)
    # The last: a client that may not see the topic does not learn where to delete records.
    assert error.args[0].code() in {*AUTHORIZATION_ERRORS, KafkaError._NOENT}, error
    return True


def test_only_the_admin_changes_topics_records_users_and_acls(
    all_topics: KafkaSettings, kafka_as: KafkaAs
) -> None:
    topic = clients.topic_name(all_topics, WEBHOOKS_DELIVER.name)
    produced(kafka_as(ADMIN))

    def attempt(principal: Principal) -> dict[str, bool]:
        admin = clients.admin(kafka_as(principal), "proof")
        return {what: _refused(action) for what, action in _admin_actions(admin, topic).items()}

    found = of_all(attempt, OTHERS)
    assert {
        name: {what for what, is_refused in tried.items() if not is_refused} for name, tried in found.items()
    } == {one.name: set() for one in OTHERS}
    assert set(attempt(ADMIN).values()) == {False}


@pytest.mark.parametrize(
    ("login", "code"),
    [
        ({}, KafkaError._ALL_BROKERS_DOWN),
        ({"sasl.password": "wrong"}, KafkaError._AUTHENTICATION),
        ({"sasl.username": "mizan-nobody-else"}, KafkaError._AUTHENTICATION),
        (
            {"sasl.mechanism": "PLAIN"},
            KafkaError._AUTHENTICATION,
        ),
    ],
    ids=["without a login", "wrong password", "unknown user", "password in plain text"],
)
def test_client_that_does_not_authenticate_learns_nothing(
    engines: TestEngines, kafka_settings: KafkaSettings, login: dict[str, str], code: int
) -> None:
    errors: list[KafkaError] = []
    config: dict[str, Any] = {
        "bootstrap.servers": kafka_settings.bootstrap_servers,
        "log_level": 0,
        "error_cb": errors.append,
        **({**engines.kafka_client(), **login} if login else {}),
    }
    admin = AdminClient(config)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=1.5)
    admin.poll(0)
    assert code in {error.code() for error in errors}
