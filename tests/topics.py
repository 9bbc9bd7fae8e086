"""Topics for tests: a pool of topic sets, a reader, and a way to delete a topic.

Each test has a topic prefix of its own. For tests that need all topics, the pool creates a set in advance.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from uuid import uuid4

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from tenacity import (
    retry,
    retry_if_exception,
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
    wait_fixed,
)

from shared.domain.messages import AnyMessage, IntentEvent, decode
from shared.domain.topics import ALL_TOPICS, PAYMENT_INTENT_EVENTS
from shared.platform.kafka import clients
from shared.platform.kafka.access import Acl, Principal, acls_of, sasl_client
from shared.platform.kafka.access_setup import AccessAdmin, AccessRefusedError, with_login
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.topic_definition import Topic
from shared.platform.kafka.topic_setup import ensure_topics
from shared.platform.settings import KafkaSettings
from stack.kafka_passwords import KafkaLogins
from tests.waiting import eventually

_NO_COORDINATOR_YET = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


@retry(
    retry=retry_if_exception(
        lambda error: isinstance(error, KafkaException) and error.args[0].code() in _NO_COORDINATOR_YET
    ),
    wait=wait_fixed(0.1),
    stop=stop_after_delay(40),
    reraise=True,
)
def commit_offset(settings: KafkaSettings, group: str, place: TopicPartition) -> None:
    """Commit an offset for a group, also in a broker whose group coordinator is only starting."""
    consumer = clients.consumer(settings, group)
    try:
        answers = consumer.commit(offsets=[place], asynchronous=False)
    finally:
        consumer.close()
    assert not any(answer.error for answer in answers or [])


class TopicReader:
    """Reads a topic from its beginning and collects the messages in `messages`."""

    def __init__(self, settings: KafkaSettings, topic: str = PAYMENT_INTENT_EVENTS.name) -> None:
        self._topic = clients.topic_name(settings, topic)
        self._consumer = clients.consumer(settings, f"reader-{uuid4()}")
        partitions = self._consumer.list_topics(self._topic, timeout=10).topics[self._topic].partitions
        self._consumer.assign([TopicPartition(self._topic, number, 0) for number in partitions])
        self.messages: list[AnyMessage] = []

    def read(self, count: int, within: float = 30.0) -> list[AnyMessage]:
        """Read until there are `count` messages in all, then a moment longer, so that unexpected ones show up.

        Fails if they do not arrive within `within` seconds.
        """
        deadline = monotonic() + within
        while len(self.messages) < count and monotonic() < deadline:
            self._consume(0.2)
        assert len(self.messages) >= count, f"only {len(self.messages)} of {count} messages arrived"
        self._consume(0.3)
        return self.messages

    def read_to_end(self) -> list[AnyMessage]:
        """Read up to the current end of the topic."""
        ends = [
            self._consumer.get_watermark_offsets(partition, timeout=10)
            for partition in self._consumer.assignment()
        ]
        while len(self.messages) < sum(high - low for low, high in ends):
            self._consume(0.2)
        return self.messages

    def events(self, count: int, within: float = 30.0) -> list[IntentEvent]:
        return [message for message in self.read(count, within) if isinstance(message, IntentEvent)]

    def _consume(self, seconds: float) -> None:
        for message in self._consumer.consume(1000, seconds):
            assert message.error() is None, message.error()
            self.messages.append(decode(message.value()))

    def close(self) -> None:
        self._consumer.close()


def delete_topic(kafka: KafkaSettings, topic: Topic) -> None:
    """Delete the topic with all its records, and wait until it is gone."""
    name = clients.topic_name(kafka, topic.name)
    admin = clients.admin(kafka, "test")
    admin.delete_topics([name], operation_timeout=30)[name].result(30)
    eventually(lambda: name not in admin.list_topics(timeout=10).topics)


_TIMEOUT_S = 2.0
LOGIN = sasl_client("", "").keys()
"""The client settings with which a principal logs in."""

retry_after_restart = retry(
    retry=retry_if_exception_type(KafkaUnavailableError), stop=stop_after_attempt(4), reraise=True
)
"""Retries while the broker is down, because the previous test has just restarted it."""


def new_prefix() -> str:
    return f"t{uuid4().hex[:8]}."


def kafka_variables(settings: KafkaSettings) -> dict[str, str]:
    """Return the settings as environment variables, for a process."""
    names = {
        f"KAFKA_CLIENT_{name.replace('.', '_').upper()}": value
        for name, value in settings.client.items()
        if name in LOGIN
    }
    return {
        "KAFKA_BOOTSTRAP_SERVERS": settings.bootstrap_servers,
        "KAFKA_TOPIC_PREFIX": settings.topic_prefix,
        **names,
    }


_pools: list["TopicPool"] = []
"""The pool of this run, once a test has used Kafka."""


def as_principal(settings: KafkaSettings, principal: Principal) -> KafkaSettings:
    """Return the same settings for one principal, which may do with these topics what it may do in an installation.

    Settings that lead to another Kafka, or to none, stay as they are.
    """
    for pool in _pools:
        if pool.settings.bootstrap_servers == settings.bootstrap_servers:
            return pool.as_principal(settings, principal)
    return settings


class TopicPool:
    def __init__(self, settings: KafkaSettings, logins: KafkaLogins | None) -> None:
        """`settings` are those of every test, except for the prefix. They are the admin's."""
        self.settings = settings
        self._logins = logins
        self._access = AccessAdmin(settings)
        _pools[:] = [self]
        self._admin = AdminClient(
            {
                **{name: value for name, value in settings.client.items() if name in LOGIN},
                "bootstrap.servers": settings.bootstrap_servers,
                "log_level": 0,
                "reconnect.backoff.max.ms": 500,
            }
        )
        self._background = ThreadPoolExecutor(1, "topics")
        self._next: Future[str] | None = None
        self._used: list[str] = []
        self._granted: set[Acl] = set()

    def take(self) -> str:
        """Return a prefix whose topics all exist."""
        made, self._next = self._next, None
        prefix = None
        if made is not None:
            with suppress(KafkaUnavailableError):  # the last test killed the broker meanwhile
                prefix = made.result()
        prefix = prefix or self._make()
        self._next = self._background.submit(self._make)
        return prefix

    def give_back(self, prefix: str) -> None:
        """Delete the topics with this prefix in the background.

        A broker that keeps the topics of hundreds of tests takes a minute to restart.
        """
        self._used.append(prefix)
        self._background.submit(self._delete_used)

    def close(self) -> None:
        self._background.shutdown(cancel_futures=True)
        _pools.clear()

    @retry_after_restart
    def _make(self) -> str:
        made = replace(self.settings, topic_prefix=new_prefix())
        ensure_topics(made, ALL_TOPICS)
        return made.topic_prefix

    def as_principal(self, settings: KafkaSettings, principal: Principal) -> KafkaSettings:
        """Return the settings of this principal. Its ACLs for the prefix are created, and nothing else is."""
        if self._logins is None:
            return settings
        self.create_acls(settings, principal)
        return with_login(settings, self._logins.client(principal.name))

    def create_acls(self, settings: KafkaSettings, *principals: Principal) -> None:
        """Create the ACLs of these principals for the prefix, for a test that stops Kafka before it uses them."""
        wanted = {acl for each in principals for acl in acls_of(each, settings.topic_prefix)}
        if self._logins is not None and not wanted <= self._granted:
            retry_after_restart(self._access.create_acls)(wanted)
            # The broker learns of them from the controller.
            eventually(lambda: wanted <= set(self._access.fetch_acls()))
            self._granted |= wanted

    def _delete_used(self) -> None:
        """Delete the topics that were given back. If Kafka is down, the next call does it."""
        try:
            there = self._admin.list_topics(timeout=_TIMEOUT_S).topics
        except KafkaException:
            return
        used, self._used = self._used, []
        if granted := {acl for acl in self._granted if acl.name.startswith(tuple(used))}:
            with suppress(KafkaUnavailableError, AccessRefusedError):
                self._access.remove_acls(granted)
            self._granted -= granted
        if names := [name for name in there if name.startswith(tuple(used))]:
            self._admin.delete_topics(names, operation_timeout=30, request_timeout=30)
