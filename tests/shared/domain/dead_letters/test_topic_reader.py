"""Reading a topic from its end, page by page, despite retention, gaps and large records."""

from dataclasses import replace
from functools import partial
from time import monotonic

import confluent_kafka
import pytest

from shared.domain.dead_letters.topic_reader import (
    open_topic_reader,
    read_newest,
    read_record,
)
from shared.domain.topics import DEAD_LETTERS
from shared.platform.kafka import clients
from shared.platform.kafka.errors import KafkaUnavailableError
from stack.engines import Engines
from tests.shared.domain.dead_letters.dead_letter_topic import DeadLetterTopic
from tests.topics import LOGIN
from tests.waiting import eventually

A_MEBIBYTE = 1024 * 1024
SOON_S = 10
"""A few seconds are promised; a busy machine takes some more."""


def offsets(dead_letter_topic: DeadLetterTopic, before: int | None = None, most: int = 50) -> list[int]:
    return [record.offset for record in read_newest(dead_letter_topic.kafka, DEAD_LETTERS, before, most)]


def all_pages(dead_letter_topic: DeadLetterTopic, most: int) -> list[int]:
    seen: list[int] = []
    while page := offsets(dead_letter_topic, seen[-1] if seen else None, most):
        assert len(page) <= most
        seen += page
    return seen


def ends_at(dead_letter_topic: DeadLetterTopic, offset: int) -> bool:
    with open_topic_reader(dead_letter_topic.kafka, DEAD_LETTERS, 0) as reader:
        return reader.end_offset == offset


def test_pages_list_every_record_once_newest_first(dead_letter_topic: DeadLetterTopic) -> None:
    """Every page but the last is full."""
    dead_letter_topic.add_many(120)
    assert offsets(dead_letter_topic) == list(range(119, 69, -1))
    assert all_pages(dead_letter_topic, 50) == list(range(119, -1, -1))


def test_empty_topic_has_no_records(dead_letter_topic: DeadLetterTopic) -> None:
    assert offsets(dead_letter_topic) == []
    assert read_record(dead_letter_topic.kafka, DEAD_LETTERS, 0) is None


def test_records_deleted_by_retention_are_not_found(dead_letter_topic: DeadLetterTopic) -> None:
    dead_letter_topic.add_many(10)
    dead_letter_topic.forget_until(DEAD_LETTERS, 0, 6)
    assert offsets(dead_letter_topic) == [9, 8, 7, 6]
    assert offsets(dead_letter_topic, before=6) == []
    assert read_record(dead_letter_topic.kafka, DEAD_LETTERS, 5) is None
    found = read_record(dead_letter_topic.kafka, DEAD_LETTERS, 6)
    assert found is not None
    assert found.offset == 6


def test_offset_beyond_the_end_reads_from_the_end(dead_letter_topic: DeadLetterTopic) -> None:
    """It may come from an old URL, of a topic that was recreated."""
    dead_letter_topic.add_many(3)
    assert offsets(dead_letter_topic, before=1_000) == [2, 1, 0]
    assert read_record(dead_letter_topic.kafka, DEAD_LETTERS, 1_000) is None


def test_gaps_are_skipped(dead_letter_topic: DeadLetterTopic) -> None:
    """Offsets of aborted transactions have no record, in the middle and at the end."""
    producer = confluent_kafka.Producer(
        {
            **{name: value for name, value in dead_letter_topic.kafka.client.items() if name in LOGIN},
            "bootstrap.servers": dead_letter_topic.kafka.bootstrap_servers,
            "transactional.id": dead_letter_topic.kafka.topic_prefix,
        }
    )
    producer.init_transactions(30)
    dead_letter_topic.add_many(5)
    for end_of_transaction in (106, 209):
        producer.begin_transaction()
        for _ in range(100):
            producer.produce(dead_letter_topic.topic_name(DEAD_LETTERS), b"never")
        producer.flush(30)
        producer.abort_transaction(30)
        # The broker has yet to write the abort marker.
        eventually(partial(ends_at, dead_letter_topic, end_of_transaction))
        dead_letter_topic.add_many(2)
    assert all_pages(dead_letter_topic, 4) == [210, 209, 107, 106, 4, 3, 2, 1, 0]
    assert read_record(dead_letter_topic.kafka, DEAD_LETTERS, 50) is None
    producer.begin_transaction()
    producer.produce(dead_letter_topic.topic_name(DEAD_LETTERS), b"never")
    producer.flush(30)
    producer.abort_transaction(30)
    assert offsets(dead_letter_topic, most=2) == [210, 209]


def test_page_is_limited_in_bytes(dead_letter_topic: DeadLetterTopic) -> None:
    """No record is left out between two pages."""
    dead_letter_topic.put(DEAD_LETTERS, [(None, b"x" * (A_MEBIBYTE * 3 // 2))] * 30)
    assert len(offsets(dead_letter_topic)) < 15
    assert all_pages(dead_letter_topic, 50) == list(range(29, -1, -1))


def test_reading_creates_no_consumer_group(dead_letter_topic: DeadLetterTopic) -> None:
    dead_letter_topic.add_many(3)
    assert offsets(dead_letter_topic) == [2, 1, 0]
    admin = clients.admin(dead_letter_topic.kafka, "test")  # it must live until it has answered
    groups = admin.list_consumer_groups().result(30)
    names = [group.group_id for group in groups.valid]
    assert not [name for name in names if name.startswith(dead_letter_topic.kafka.topic_prefix)]


def test_missing_topic_raises_kafka_unavailable(dead_letter_topic: DeadLetterTopic) -> None:
    with pytest.raises(KafkaUnavailableError):
        read_newest(dead_letter_topic.kafka, replace(DEAD_LETTERS, name="nowhere"), None, 10)


@pytest.mark.kills
def test_reading_fails_within_seconds_while_kafka_is_unavailable(
    dead_letter_topic: DeadLetterTopic, killable_engines: Engines
) -> None:
    """When Kafka is back, the same records are read."""
    dead_letter_topic.add_many(3)
    killable_engines.kafka.kill()
    for look in (
        lambda: offsets(dead_letter_topic),
        lambda: read_record(dead_letter_topic.kafka, DEAD_LETTERS, 0),
    ):
        began = monotonic()
        with pytest.raises(KafkaUnavailableError):
            look()
        assert monotonic() - began < SOON_S
    killable_engines.kafka.start()
    dead_letter_topic.wait_for_kafka()
    assert offsets(dead_letter_topic) == [2, 1, 0]
