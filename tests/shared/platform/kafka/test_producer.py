"""The confirming producer: all records are confirmed or the refused ones named, and none arrives later."""

import pytest

from shared.domain.messages import encode
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.producer import ConfirmingProducer, NotConfirmedError, OutgoingRecord, raise_after
from shared.platform.settings import KafkaSettings
from stack.engines import Engines
from tests.shared.platform.kafka.harness import WORK, Kafka, event
from tests.topics import TopicReader


def _records(count: int) -> list[OutgoingRecord]:
    return [OutgoingRecord(WORK.name, "k", encode(event(n))) for n in range(count)]


def test_send_returns_when_all_records_are_confirmed(kafka: Kafka, kafka_settings: KafkaSettings) -> None:
    """Then all records are on the topic, in order."""
    ConfirmingProducer(kafka_settings, "test").send(_records(1000), on_wait=raise_after(30))
    sent = TopicReader(kafka_settings, WORK.name).events(1000)
    assert [message.seq for message in sent] == list(range(1000))


def test_refused_records_are_named(kafka: Kafka, kafka_settings: KafkaSettings) -> None:
    """Later records of the same key are refused too, so that none overtakes it; other keys are confirmed."""
    records = [OutgoingRecord(WORK.name, key, encode(event(n))) for n, key in enumerate(["a", "b", "a", "b"])]
    records[1] = OutgoingRecord(WORK.name, "b", b"x" * 3_000_000)
    with pytest.raises(NotConfirmedError) as caught:
        ConfirmingProducer(kafka_settings, "test").send(records, on_wait=raise_after(30))
    assert list(caught.value.refused) == [1, 3]
    assert not isinstance(caught.value, KafkaUnavailableError), "trying again would not help"
    assert [message.seq for message in TopicReader(kafka_settings, WORK.name).events(2)] == [0, 2]


@pytest.mark.kills
def test_send_gives_up_in_time_and_nothing_arrives_later(
    killable_engines: Engines, kafka: Kafka, kafka_settings: KafkaSettings
) -> None:
    """Discarded records stay discarded when Kafka returns; the same producer continues to work."""
    producer = ConfirmingProducer(kafka_settings, "test")
    producer.send(_records(1), on_wait=raise_after(30))
    killable_engines.kafka.kill()
    with pytest.raises(KafkaUnavailableError, match="did not confirm"):
        producer.send(_records(50), on_wait=raise_after(1))
    killable_engines.kafka.start()
    producer.send(_records(2), on_wait=raise_after(30))
    assert len(TopicReader(kafka_settings, WORK.name).events(3)) == 3


def test_send_waits_while_the_queue_is_full(kafka: Kafka, kafka_settings: KafkaSettings) -> None:
    narrow = dict(kafka_settings.client) | {"queue.buffering.max.messages": "100"}
    settings = KafkaSettings(kafka_settings.bootstrap_servers, kafka_settings.topic_prefix, 1, narrow)
    ConfirmingProducer(settings, "test").send(_records(1_000), on_wait=raise_after(30))
    assert len(TopicReader(kafka_settings, WORK.name).events(1_000)) == 1_000
