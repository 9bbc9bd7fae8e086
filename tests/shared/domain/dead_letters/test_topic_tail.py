"""Looking into a topic from its end: page by page, whatever retention, gaps and large records do to it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic

import confluent_kafka
import pytest

from shared.domain.dead_letters.topic_tail import Count, counts, looking_into, newest, one_at
from shared.domain.topics import DEAD_LETTERS
from shared.platform.kafka import clients
from shared.platform.kafka.errors import KafkaUnavailableError
from stack.engines import Engines
from tests.shared.domain.dead_letters.graveyard import Graveyard
from tests.waiting import eventually

A_MEBIBYTE = 1024 * 1024
SOON_S = 10
"""A few seconds are promised; a busy machine takes some more."""


def offsets(graveyard: Graveyard, before: int | None = None, most: int = 50) -> list[int]:
    return [record.offset for record in newest(graveyard.kafka, DEAD_LETTERS, before, most)]


def all_pages(graveyard: Graveyard, most: int) -> list[int]:
    seen: list[int] = []
    while page := offsets(graveyard, seen[-1] if seen else None, most):
        assert len(page) <= most
        seen += page
    return seen


def ends_at(graveyard: Graveyard, offset: int) -> bool:
    with looking_into(graveyard.kafka, DEAD_LETTERS, 0) as tail:
        return tail.behind == offset


def test_pages_go_back_to_the_beginning(graveyard: Graveyard) -> None:
    """Newest first, each record once, and full pages until the last."""
    graveyard.bury_many(120)
    assert offsets(graveyard) == list(range(119, 69, -1))
    assert all_pages(graveyard, 50) == list(range(119, -1, -1))


def test_an_empty_topic(graveyard: Graveyard) -> None:
    assert offsets(graveyard) == []
    assert one_at(graveyard.kafka, DEAD_LETTERS, 0) is None
    assert counts(graveyard.kafka, DEAD_LETTERS, datetime.now(UTC)) == Count(0, 0)


def test_what_retention_has_taken_is_gone(graveyard: Graveyard) -> None:
    graveyard.bury_many(10)
    graveyard.forget_until(DEAD_LETTERS, 0, 6)
    assert offsets(graveyard) == [9, 8, 7, 6]
    assert offsets(graveyard, before=6) == []
    assert one_at(graveyard.kafka, DEAD_LETTERS, 5) is None
    found = one_at(graveyard.kafka, DEAD_LETTERS, 6)
    assert found is not None
    assert found.offset == 6


def test_an_offset_behind_the_end(graveyard: Graveyard) -> None:
    """From an old address, of a topic that was made again."""
    graveyard.bury_many(3)
    assert offsets(graveyard, before=1_000) == [2, 1, 0]
    assert one_at(graveyard.kafka, DEAD_LETTERS, 1_000) is None


def test_gaps_are_passed_over(graveyard: Graveyard) -> None:
    """Offsets of transactions that came to nothing hold no record, in the middle and at the end."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": graveyard.kafka.bootstrap_servers,
            "transactional.id": graveyard.kafka.topic_prefix,
        }
    )
    producer.init_transactions(30)
    graveyard.bury_many(5)
    for end_of_transaction in (106, 209):
        producer.begin_transaction()
        for _ in range(100):
            producer.produce(graveyard.topic_name(DEAD_LETTERS), b"never")
        producer.flush(30)
        producer.abort_transaction(30)
        # The broker has yet to write the mark that it was aborted.
        eventually(partial(ends_at, graveyard, end_of_transaction))
        graveyard.bury_many(2)
    assert all_pages(graveyard, 4) == [210, 209, 107, 106, 4, 3, 2, 1, 0]
    assert one_at(graveyard.kafka, DEAD_LETTERS, 50) is None
    producer.begin_transaction()
    producer.produce(graveyard.topic_name(DEAD_LETTERS), b"never")
    producer.flush(30)
    producer.abort_transaction(30)
    assert offsets(graveyard, most=2) == [210, 209]


def test_large_records_come_a_few_at_a_time(graveyard: Graveyard) -> None:
    """A page is bounded in bytes too; none is left out between two pages."""
    graveyard.put(DEAD_LETTERS, [(None, b"x" * (A_MEBIBYTE * 3 // 2))] * 30)
    assert len(offsets(graveyard)) < 15
    assert all_pages(graveyard, 50) == list(range(29, -1, -1))


def test_how_many_came_since(graveyard: Graveyard) -> None:
    graveyard.bury_many(4)
    graveyard.forget_until(DEAD_LETTERS, 0, 1)
    now = datetime.now(UTC)
    assert counts(graveyard.kafka, DEAD_LETTERS, now - timedelta(hours=1)) == Count(3, 3)
    assert counts(graveyard.kafka, DEAD_LETTERS, now + timedelta(hours=1)) == Count(3, 0)


def test_no_consumer_group_comes_of_it(graveyard: Graveyard) -> None:
    graveyard.bury_many(3)
    assert offsets(graveyard) == [2, 1, 0]
    groups = clients.admin(graveyard.kafka, "test").list_consumer_groups().result(30)
    names = [group.group_id for group in groups.valid]
    assert not [name for name in names if name.startswith(graveyard.kafka.topic_prefix)]


def test_a_missing_topic_is_told(graveyard: Graveyard) -> None:
    with pytest.raises(KafkaUnavailableError):
        newest(graveyard.kafka, replace(DEAD_LETTERS, name="nowhere"), None, 10)


@pytest.mark.kills
def test_kafka_away_is_told_soon(graveyard: Graveyard, killable_engines: Engines) -> None:
    """And when it is back, everything is as it was."""
    graveyard.bury_many(3)
    killable_engines.kafka.kill()
    for look in (
        lambda: offsets(graveyard),
        lambda: one_at(graveyard.kafka, DEAD_LETTERS, 0),
        lambda: counts(graveyard.kafka, DEAD_LETTERS, datetime.now(UTC)),
    ):
        began = monotonic()
        with pytest.raises(KafkaUnavailableError):
            look()
        assert monotonic() - began < SOON_S
    killable_engines.kafka.start()
    graveyard.wait_for_kafka()
    assert offsets(graveyard) == [2, 1, 0]
