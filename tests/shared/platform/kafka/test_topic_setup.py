"""Topics are created once, checked at every start, and never silently used when they differ."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions

from shared.domain.topics import ALL_TOPICS, WEBHOOKS_DELAY
from shared.platform.kafka import clients
from shared.platform.kafka.admin import LATEST
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.topic_definition import Topic
from shared.platform.kafka.topic_setup import TopicsDifferError, ensure_topics
from shared.platform.settings import KafkaSettings, SettingsError, read_settings
from stack.ports import find_free_ports
from tests.waiting import eventually

WORK = Topic("work", 3, timedelta(days=2), key="x")


def test_missing_topics_are_created_once(kafka_settings: KafkaSettings) -> None:
    """The second start creates none."""
    assert len(ensure_topics(kafka_settings, ALL_TOPICS)) == len(ALL_TOPICS) == 15
    assert ensure_topics(kafka_settings, ALL_TOPICS) == []


def test_new_topics_can_be_used_at_once(kafka_settings: KafkaSettings) -> None:
    """Every partition has a leader that responds. Metadata may name a leader before it is ready."""
    admin = clients.admin(kafka_settings, "test")
    for n in range(5):
        settings = replace(kafka_settings, topic_prefix=f"{kafka_settings.topic_prefix}{n}.")
        made = ensure_topics(settings, ALL_TOPICS)
        places = [TopicPartition(name, 0) for name in made]
        for answer in admin.list_offsets(dict.fromkeys(places, LATEST)).values():
            assert answer.result(10).offset == 0


def test_services_that_start_together_create_each_topic_once(kafka_settings: KafkaSettings) -> None:
    with ThreadPoolExecutor(5) as pool:
        made = list(pool.map(lambda _: ensure_topics(kafka_settings, [WORK]), range(5)))
    assert sum(len(names) for names in made) == 1


def test_every_difference_to_the_definition_is_reported(kafka_settings: KafkaSettings) -> None:
    """Partitions, retention and replication, with the actual and the expected value."""
    ensure_topics(kafka_settings, [WORK])
    other = replace(WORK, partitions=5, retention=timedelta(days=9))
    with pytest.raises(TopicsDifferError) as caught:
        ensure_topics(replace(kafka_settings, replication_factor=3), [other])
    name = clients.topic_name(kafka_settings, "work")
    assert caught.value.differences == (
        f"{name}: partitions is 3, should be 5",
        f"{name}: replication factor is 1, should be 3",
        f"{name}: retention.ms is 172800000, should be 777600000",
        f"{name}: min.insync.replicas is 1, should be 2",
    )


def test_topic_with_more_partitions_is_reported(kafka_settings: KafkaSettings) -> None:
    """More partitions move keys to other partitions, which breaks their order."""
    ensure_topics(kafka_settings, [WORK])
    name = clients.topic_name(kafka_settings, "work")
    admin = clients.admin(kafka_settings, "test")
    (grown,) = admin.create_partitions([NewPartitions(name, 8)]).values()
    grown.result(10)
    eventually(lambda: len(admin.list_topics(name, timeout=10).topics[name].partitions) == 8)
    with pytest.raises(TopicsDifferError, match="partitions is 8, should be 3"):
        ensure_topics(kafka_settings, [WORK])


def test_unreachable_kafka_raises_kafka_unavailable(
    kafka_settings: KafkaSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the caller may retry."""
    monkeypatch.setattr("shared.platform.kafka.topic_setup._TIMEOUT_S", 1.0)
    nobody = f"127.0.0.1:{find_free_ports(1)[0]}"
    with pytest.raises(KafkaUnavailableError):
        ensure_topics(replace(kafka_settings, bootstrap_servers=nobody), [WORK])


@pytest.mark.parametrize(("brokers", "in_sync"), [(1, "1"), (3, "2"), (5, "3")])
def test_min_insync_replicas_is_a_majority_of_the_brokers(brokers: int, in_sync: str) -> None:
    """With one of three brokers lost, writing continues."""
    assert WORK.config(brokers)["min.insync.replicas"] == in_sync


@pytest.mark.parametrize("topic", WEBHOOKS_DELAY, ids=lambda topic: topic.name)
def test_kafka_keeps_a_delayed_record_longer_than_any_delay_and_an_outage(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings refuse a delay that leaves less than three days until Kafka deletes the record."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1/mizan")
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092")
    kept_ms = int(topic.config(1)["retention.ms"])
    too_long_s = kept_ms / 1000 - timedelta(days=3).total_seconds()
    delays = [1.0] * (len(WEBHOOKS_DELAY) - 1)
    monkeypatch.setenv("WEBHOOK_RETRY_DELAYS", ",".join(map(str, [*delays, too_long_s])))
    with pytest.raises(SettingsError, match="WEBHOOK_RETRY_DELAYS"):
        read_settings()


def test_broker_lost_while_topics_are_checked_raises_kafka_unavailable(
    kafka_settings: KafkaSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks between the creation of the topics and the reading of their configuration."""

    def lose_connection(_admin: AdminClient, resources: list[ConfigResource], **_: object) -> object:
        lost: Future[object] = Future()
        lost.set_exception(KafkaException(KafkaError(KafkaError._TRANSPORT)))
        return dict.fromkeys(resources, lost)

    monkeypatch.setattr(AdminClient, "describe_configs", lose_connection)
    with pytest.raises(KafkaUnavailableError):
        ensure_topics(kafka_settings, [WORK])
