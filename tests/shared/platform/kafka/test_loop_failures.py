"""Poison messages, failures and outages: records are retried in place, or become dead letters."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from threading import Event

import pytest
from confluent_kafka import Consumer

from shared.domain.dead_letters.producer import KafkaDeadLetterProducer
from shared.platform.database.pool import DatabaseUnavailableError, StatementTimeoutError
from shared.platform.kafka import clients
from shared.platform.kafka.handlers import BatchHandler
from shared.platform.kafka.records import Record, Task
from tests.shared.platform.kafka.harness import GROUP, WORK, Collector, Kafka, event, running, seq
from tests.waiting import eventually


def test_unreadable_record_becomes_a_dead_letter(kafka: Kafka) -> None:
    """It stops no other record, and the dead letter has its value, its origin and the reason."""
    poison = b"\xff\x00 not ours"
    kafka.put([event(0), poison, event(1)], key="same-partition")
    collector = Collector()
    with running(kafka.loop(BatchHandler(collector))):
        eventually(lambda: kafka.committed() == 3)
    assert collector.seen == [0, 1]
    (letter,) = kafka.dead_letters()
    assert (letter.value, letter.key, letter.offset) == (poison, b"same-partition", 1)
    assert letter.topic.endswith("work")
    assert letter.group.endswith("worker")
    assert letter.reason.startswith("unreadable")


def test_large_poison_message_becomes_a_dead_letter(kafka: Kafka) -> None:
    """A dead letter is larger than its record, and must still fit, or it would block its partition."""
    kafka.put([b"x" * 900_000, event(0), event(1)], key="same-partition")
    collector = Collector()
    with running(kafka.loop(BatchHandler(collector))):
        eventually(lambda: kafka.committed() == 3)
    assert collector.seen == [0, 1]
    (letter,) = kafka.dead_letters()
    assert letter.value == b"x" * 900_000


def test_dead_letter_that_is_too_large_has_only_the_origin_of_its_record(kafka: Kafka) -> None:
    """The value is left out, and is still at its origin; other dead letters of the batch have theirs."""
    huge = Record("elsewhere", 2, 7, b"key", b"x" * 3_000_000, 0.0)
    small = Record("elsewhere", 2, 8, b"key", b"bad", 0.0)
    KafkaDeadLetterProducer(kafka.settings).send([(small, "why"), (huge, "why")], "group")
    stripped, whole = kafka.dead_letters()
    assert (stripped.topic, stripped.partition, stripped.offset, stripped.key) == ("elsewhere", 2, 7, b"key")
    assert stripped.value is None
    assert "3000000 bytes is too large" in stripped.reason
    assert (whole.offset, whole.value, whole.reason) == (8, b"bad", "why")


def test_record_that_fails_three_times_becomes_a_dead_letter(kafka: Kafka) -> None:
    """The other records of its batch, before and after it, are handled in order."""
    tries = 0
    handled: list[int] = []

    def handle(tasks: Sequence[Task]) -> None:
        nonlocal tries
        if any(seq(task) == 5 for task in tasks):
            tries += len(tasks) == 1
            raise ZeroDivisionError("five is too much")
        handled.extend(seq(task) for task in tasks)

    kafka.put([event(n) for n in range(10)], key="same-partition")
    with running(kafka.loop(BatchHandler(handle))):
        eventually(lambda: kafka.committed() == 10)
    assert handled == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert tries == 3
    (letter,) = kafka.dead_letters()
    assert "five is too much" in letter.reason


def test_failing_record_delays_only_its_own_partition(kafka: Kafka) -> None:
    """While it is retried, the other partitions continue."""
    handled: list[int] = []

    def handle(tasks: Sequence[Task]) -> None:
        if any(task.record.key == b"bad" for task in tasks):
            raise ZeroDivisionError
        handled.extend(seq(task) for task in tasks)

    kafka.put([event(n) for n in range(5)], key="bad")
    kafka.put([event(n) for n in range(100, 200)])
    with running(kafka.loop(BatchHandler(handle))):
        eventually(lambda: len(kafka.dead_letters()) == 5)
        eventually(lambda: kafka.committed() == 105)
    assert sorted(handled) == list(range(100, 200))


def test_records_are_retried_in_place_during_an_outage(kafka: Kafka) -> None:
    """The database is down: the loop polls and retries the same records; none is lost or becomes a dead letter."""
    database_is_back = Event()
    tries = 0
    collector = Collector()

    def handle(tasks: Sequence[Task]) -> None:
        nonlocal tries
        if not database_is_back.is_set():
            tries += 1
            raise DatabaseUnavailableError("gone fishing")
        collector(tasks)

    kafka.put([event(n) for n in range(50)])
    loop = kafka.loop(BatchHandler(handle))
    with running(loop):
        eventually(lambda: tries >= 4)
        loop.progress.check()
        assert kafka.committed() == 0
        database_is_back.set()
        eventually(lambda: kafka.committed() == 50)
    assert sorted(collector.seen) == list(range(50))
    assert kafka.dead_letters() == []


def test_a_batch_that_times_out_is_split(kafka: Kafka) -> None:
    """The statement of a large batch takes too long: smaller ones work, and nothing is dead-lettered."""
    collector = Collector()
    sizes: list[int] = []

    def handle(tasks: Sequence[Task]) -> None:
        sizes.append(len(tasks))
        if len(tasks) > 5:
            raise StatementTimeoutError("canceling statement due to statement timeout")
        collector(tasks)

    kafka.put([event(n) for n in range(50)], key="same-partition")
    with running(kafka.loop(BatchHandler(handle))):
        eventually(lambda: kafka.committed() == 50)
    assert sorted(collector.seen) == list(range(50))
    assert max(sizes) > 5
    assert kafka.dead_letters() == []


def test_a_record_that_times_out_alone_goes_to_the_dead_letters(kafka: Kafka) -> None:
    """It is treated like any failing record."""
    alone = 0
    collector = Collector()

    def handle(tasks: Sequence[Task]) -> None:
        nonlocal alone
        if any(seq(task) == 5 for task in tasks):
            alone += len(tasks) == 1
            raise StatementTimeoutError("canceling statement due to statement timeout")
        collector(tasks)

    kafka.put([event(n) for n in range(10)], key="same-partition")
    with running(kafka.loop(BatchHandler(handle))):
        eventually(lambda: kafka.committed() == 10)
    assert collector.seen == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert alone == 3
    (letter,) = kafka.dead_letters()
    assert "statement timeout" in letter.reason


def test_a_rejected_record_goes_to_the_dead_letters(kafka: Kafka) -> None:
    """The handler does not fail: it says what is wrong with the record, which is not retried."""
    collector = Collector()

    def handle(tasks: Sequence[Task]) -> None:
        for task in tasks:
            if seq(task) == 1:
                task.reject("one is too few")
        collector([task for task in tasks if task.poison_reason is None])

    kafka.put([event(n) for n in range(3)], key="same-partition")
    with running(kafka.loop(BatchHandler(handle))):
        eventually(lambda: kafka.committed() == 3)
    assert collector.seen == [0, 2]
    (letter,) = kafka.dead_letters()
    assert (letter.offset, letter.reason) == (1, "one is too few")


def test_wait_is_never_negative_at_the_end_of_a_pause(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause ends between two readings of the clock. A negative timeout would make librdkafka wait forever."""
    loop = kafka.loop(BatchHandler(Collector()))
    loop._not_before = 10.0
    clock = iter([9.999_999, 10.000_001, 10.000_002])
    monkeypatch.setattr("shared.platform.kafka.consumer_loop.monotonic", lambda: next(clock))
    assert 0 <= loop._wait_s() <= 0.25


@pytest.fixture
def static_kafka(kafka: Kafka) -> Kafka:
    """All members of its group have the same name, so each new one takes the partitions of the one before."""
    kafka.settings = replace(kafka.settings, client={**kafka.settings.client, "group.instance.id": "same"})
    return kafka


def fence(kafka: Kafka) -> None:
    """Join under the same name, and go: whoever had it before gets a fatal error at its next request."""
    other: Consumer = clients.consumer(kafka.settings, GROUP)
    other.subscribe([clients.topic_name(kafka.settings, WORK.name)])
    eventually(lambda: other.poll(0.1) or other.assignment())
    other.close()


def test_fenced_client_is_replaced_once(static_kafka: Kafka) -> None:
    """As after a stall. If that happens again soon, the name belongs to another process, too, and this one ends."""
    kafka, done = static_kafka, Collector()
    loop = kafka.loop(BatchHandler(done))
    with ThreadPoolExecutor() as thread, ExitStack() as at_end:
        at_end.callback(loop.stop)
        ended = thread.submit(loop.run)
        kafka.put([event(n) for n in range(8)])
        eventually(lambda: kafka.committed() == 8)
        client = loop._consumer
        fence(kafka)
        eventually(lambda: loop._consumer is not client)
        kafka.put([event(n) for n in range(8, 16)])
        eventually(lambda: kafka.committed() == 16)
        assert not ended.done()
        fence(kafka)
        assert "fenced" in str(ended.exception(timeout=30))
    assert sorted(done.seen) == list(range(16))
