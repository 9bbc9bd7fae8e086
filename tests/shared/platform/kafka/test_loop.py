"""The consumer loop with real Kafka: in order, nothing lost, offsets committed last."""

import gc
import json
from collections.abc import Sequence
from dataclasses import replace
from time import sleep, time

from confluent_kafka.admin import AdminClient

from shared.platform.kafka.handlers import BatchHandler
from shared.platform.kafka.records import Task
from tests.shared.platform.kafka.harness import Collector, Kafka, event, running, seq
from tests.waiting import eventually


def test_records_are_handled_once_in_order_and_committed(kafka: Kafka) -> None:
    """Each partition in order; the next consumer handles none of them again."""
    kafka.put([event(n) for n in range(500)])
    collector = Collector()
    with running(kafka.loop(BatchHandler(collector))):
        eventually(lambda: kafka.committed() == 500)
    assert sorted(collector.seen) == list(range(500))
    assert all(offsets == sorted(offsets) for offsets in collector.by_partition.values())

    kafka.put([event(500)])
    after = Collector()
    with running(kafka.loop(BatchHandler(after))):
        eventually(lambda: after.seen)
    assert after.seen == [500]


def test_loop_that_has_ended_leaves_no_client_with_requests_on_their_way(kafka: Kafka) -> None:
    """The client would call into the interpreter while it ends, and crash the process (exit code -11)."""
    before = _admin_clients()
    loop = kafka.loop(BatchHandler(Collector()))
    assert not _admin_clients() <= before
    with running(loop):
        pass
    assert _admin_clients() <= before


def test_held_record_is_handled_when_it_is_due_and_not_before(kafka: Kafka) -> None:
    """Its partition waits behind it, other partitions do not, and no record is skipped."""
    due_at = 0.0
    moved: dict[int, float] = {}

    def handle(tasks: Sequence[Task]) -> None:
        nonlocal due_at
        due_at = due_at or time() + 2.5
        for task in tasks:
            if task.record.key == b"later" and time() < due_at:
                task.hold_until(due_at)
            else:
                moved[seq(task)] = time()

    kafka.put([event(n) for n in range(5)], key="later")
    kafka.put([event(n) for n in range(100, 140)])
    with running(kafka.loop(BatchHandler(handle))):
        eventually(lambda: len(moved) >= 20)
        assert not any(n < 5 for n in moved)
        eventually(lambda: kafka.committed() == 45)
    assert all(moved[n] >= due_at for n in range(5))
    assert max(moved[n] for n in range(5)) < due_at + 15
    assert [n for n in moved if n < 5] == [0, 1, 2, 3, 4]


def test_held_record_is_passed_to_the_handler_twice_only(kafka: Kafka) -> None:
    """On arrival and when it is due, however many records become due before it."""
    handed_out = 0
    start = time() + 1

    def handle(tasks: Sequence[Task]) -> None:
        nonlocal handed_out
        handed_out += len(tasks)
        for task in tasks:
            if time() < start + seq(task) / 500:
                task.hold_until(start + seq(task) / 500)

    kafka.put([event(n) for n in range(1_000)], key="same-partition")
    with running(kafka.loop(BatchHandler(handle))):
        eventually(lambda: kafka.committed() == 1_000)
    assert handed_out <= 2_000


def test_every_record_is_fetched_once(kafka: Kafka) -> None:
    """With a handler slower than Kafka, fetched records wait; they are not discarded and fetched again."""
    fetched = 0

    def count(statistics: str) -> None:
        nonlocal fetched
        told = json.loads(statistics)
        if told["type"] == "consumer":  # the loop has other clients too
            partitions = (part for topic in told["topics"].values() for part in topic["partitions"].values())
            fetched = sum(part["rxmsgs"] for part in partitions)

    def slow(_tasks: Sequence[Task]) -> None:
        sleep(0.03)  # the work itself

    kafka.put([event(n) for n in range(20_000)])
    client = {**kafka.settings.client, "statistics.interval.ms": "200", "stats_cb": count}
    kafka.settings = replace(kafka.settings, client=client)  # type: ignore[arg-type]
    with running(kafka.loop(BatchHandler(slow))):
        eventually(lambda: kafka.committed() == 20_000)
        eventually(lambda: fetched >= 20_000)
    assert fetched == 20_000


def _admin_clients() -> set[int]:
    return {id(each) for each in gc.get_objects() if isinstance(each, AdminClient)}
