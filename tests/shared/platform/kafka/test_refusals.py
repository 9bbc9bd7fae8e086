"""A client that Kafka refuses says so: in /readyz, in its errors, and not a thousand times in the log."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from confluent_kafka import KafkaError, KafkaException

from shared.domain.kafka_principals import CHECKOUT_VERIFIER, MONITOR
from shared.domain.topics import ALL_TOPICS, CHECKOUT_VERIFY, DEAD_LETTERS, WEBHOOKS_DELIVER
from shared.platform.kafka import consumer_loop
from shared.platform.kafka.access import Acl, Principal
from shared.platform.kafka.access_setup import AccessAdmin, with_login
from shared.platform.kafka.admin import KafkaReadiness
from shared.platform.kafka.consumer_loop import ConsumerLoop
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.handlers import BatchHandler
from shared.platform.kafka.inspection.inspector import KafkaInspector
from shared.platform.kafka.producer import (
    ConfirmingProducer,
    NotConfirmedYetError,
    OutgoingRecord,
    raise_after,
)
from shared.platform.kafka.progress import ConsumerStalledError
from shared.platform.kafka.records import Record, Task
from shared.platform.kafka.refusals import RefusedLoginFilter
from shared.platform.settings import KafkaSettings
from tests.shared.platform.kafka.harness import running
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("has_access_control")

KafkaAs = Callable[[Principal], KafkaSettings]
REFUSED = "SASL authentication error"


@pytest.fixture
def wrong_password(kafka_settings: KafkaSettings) -> KafkaSettings:
    return with_login(kafka_settings, {"sasl.password": "not the password"})


def test_readiness_names_the_refused_login(wrong_password: KafkaSettings) -> None:
    with pytest.raises(KafkaUnavailableError) as refused:
        KafkaReadiness(wrong_password).check()
    assert "(as mizan-admin: " in str(refused.value)
    assert REFUSED in str(refused.value)
    assert "not the password" not in str(refused.value)


def test_producer_names_the_refused_login(wrong_password: KafkaSettings) -> None:
    producer = ConfirmingProducer(wrong_password, "test")
    with pytest.raises(KafkaUnavailableError, match=REFUSED):
        producer.send([OutgoingRecord(WEBHOOKS_DELIVER.name, b"k", b"v")], on_wait=raise_after(2))


def test_inspection_names_the_refused_login(wrong_password: KafkaSettings) -> None:
    inspector = KafkaInspector(wrong_password, ALL_TOPICS)
    with pytest.raises(KafkaUnavailableError, match=REFUSED):
        inspector.inspect()
    inspector.close()


def test_refused_login_is_logged_once_a_minute() -> None:
    """librdkafka repeats it several times a second. Other lines pass."""
    log_filter = RefusedLoginFilter()
    lines = [f"FAIL: {REFUSED}: no", f"FAIL: {REFUSED}: no", "FAIL: Connection refused"]
    records = [logging.LogRecord("kafka", logging.ERROR, "", 0, line, None, None) for line in lines]
    assert [log_filter.filter(record) for record in records] == [True, False, True]


def test_record_that_an_acl_forbids_is_sent_again_later(all_topics: KafkaSettings, kafka_as: KafkaAs) -> None:
    """It is no poison message: an operator will add the ACL. So the error is a transient one."""
    producer = ConfirmingProducer(kafka_as(MONITOR), "test")
    with pytest.raises(NotConfirmedYetError, match="authorization failed"):
        producer.send([OutgoingRecord(DEAD_LETTERS.name, b"k", b"v")], on_wait=raise_after(30))


def test_producer_sends_to_a_topic_soon_after_it_gets_its_acls(
    all_topics: KafkaSettings, kafka_as: KafkaAs
) -> None:
    """librdkafka would ask for the refused topic again only minutes later. The loss of all of Kafka loses all ACLs."""
    producer = ConfirmingProducer(kafka_as(CHECKOUT_VERIFIER), "test")
    record = OutgoingRecord(WEBHOOKS_DELIVER.name, b"k", b"v")
    with pytest.raises(NotConfirmedYetError, match="authorization failed"):
        producer.send([record], on_wait=raise_after(30))
    name = f"{all_topics.topic_prefix}{WEBHOOKS_DELIVER.name}"
    acls = [Acl(CHECKOUT_VERIFIER.name, "topic", name, verb) for verb in ("describe", "write")]
    admin = AccessAdmin(all_topics)
    admin.create_acls(acls)
    eventually(lambda: set(acls) <= set(admin.fetch_acls()))
    producer.send([record], on_wait=raise_after(30))


class _ClientWithFatalError:
    """Refuses each record, as a client does that has had a fatal error before."""

    def produce(self, *_: object, **__: object) -> None:
        raise KafkaException(KafkaError(KafkaError._FATAL))

    def flush(self, _: float) -> int:
        return 0

    def purge(self, **_: bool) -> None:
        pass


def test_producer_replaces_a_client_that_had_a_fatal_error_before(all_topics: KafkaSettings) -> None:
    """While a cluster has no ACLs yet, the producer's id is refused, which is fatal for the client."""
    producer = ConfirmingProducer(all_topics, "test")
    producer._client = _ClientWithFatalError()  # type: ignore[assignment]
    record = OutgoingRecord(WEBHOOKS_DELIVER.name, b"k", b"v")
    with pytest.raises(NotConfirmedYetError):
        producer.send([record], on_wait=raise_after(30))
    producer.send([record], on_wait=raise_after(30))


class _NoDeadLetters:
    def send(self, poison: Sequence[tuple[Record, str]], group: str) -> None:
        raise AssertionError(f"{poison} of {group}")


def test_consumer_without_its_acl_is_not_ready_and_continues_once_it_has_it(
    all_topics: KafkaSettings, kafka_as: KafkaAs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_loop, "_REFUSED_RETRY_S", 1.0)
    own = kafka_as(CHECKOUT_VERIFIER)
    admin = AccessAdmin(all_topics)
    name = f"{all_topics.topic_prefix}{CHECKOUT_VERIFY.name}"
    acl = Acl(CHECKOUT_VERIFIER.name, "topic", name, "read")
    admin.remove_acls([acl])
    eventually(lambda: acl not in admin.fetch_acls())
    seen: list[Task] = []

    def handle(tasks: Sequence[Task]) -> None:
        seen.extend(tasks)
        for task in tasks:
            task.done()

    loop = ConsumerLoop(
        replace(own, client={**own.client, "log_level": "0"}),
        str(CHECKOUT_VERIFY.group),
        [CHECKOUT_VERIFY.name],
        BatchHandler(handle, 10),
        _NoDeadLetters(),
        decode=lambda value: value,
    )
    with running(loop):
        eventually(lambda: "authorization failed" in _problem(loop))
        admin.create_acls([acl])
        producer = ConfirmingProducer(all_topics, "test")
        producer.send([OutgoingRecord(CHECKOUT_VERIFY.name, b"k", b"{}")], on_wait=raise_after(30))
        eventually(lambda: _problem(loop) == "")
        eventually(lambda: bool(seen))


def _problem(loop: ConsumerLoop) -> str:
    try:
        loop.progress.check()
    except ConsumerStalledError as error:
        return str(error)
    return ""
