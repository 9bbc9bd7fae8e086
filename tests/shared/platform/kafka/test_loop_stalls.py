"""/readyz reports a worker that is alive but has stopped consuming, and its recovery."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from threading import Event
from time import monotonic, time
from typing import NoReturn

import pytest

from shared.domain.dead_letters.producer import KafkaDeadLetterProducer
from shared.domain.messages import decode
from shared.platform.database.pool import DatabaseUnavailableError
from shared.platform.kafka import (
    admin,
    clients,
    consumer_loop,
    progress,
    recreated_topics,
    stall_recovery,
)
from shared.platform.kafka.assignment import topic_partitions
from shared.platform.kafka.consumer_loop import ConsumerLoop
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.handlers import BatchHandler
from shared.platform.kafka.progress import ConsumerStalledError
from shared.platform.kafka.records import Record, Task
from shared.platform.kafka.stall_recovery import RECOVERIES
from stack.engines import Engines
from tests.shared.platform.kafka.harness import GROUP, WORK, Collector, Kafka, event, running
from tests.waiting import error_text, eventually


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the limits from a minute to two seconds."""
    monkeypatch.setattr(progress, "STALL_LIMIT_S", 2.0)
    monkeypatch.setattr(progress, "_OBSERVE_EVERY_S", 0.1)
    monkeypatch.setattr(progress, "_STALE_AFTER_S", 0.5)
    monkeypatch.setattr(progress, "_REQUEST_EVERY_S", 0.5)


def problem_of(loop: ConsumerLoop) -> str:
    return error_text(loop.progress.check, ConsumerStalledError)


def stays_ready(loop: ConsumerLoop, seconds: float = 3.0) -> None:
    until = monotonic() + seconds
    eventually(lambda: problem_of(loop) or monotonic() > until)
    assert not problem_of(loop)


def stop_fetching(loop: ConsumerLoop) -> None:
    """Pause the client without the loop's knowledge: it continues to poll, but gets no records."""
    loop._consumer.pause(topic_partitions(loop._assignment.all()))


def fetch_again(loop: ConsumerLoop) -> None:
    loop._consumer.resume(topic_partitions(loop._assignment.all()))


def test_consumer_that_stopped_polling_is_reported(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler hangs: the process is alive, but its loop does not poll."""
    monkeypatch.setattr(progress, "POLL_LIMIT_S", 0.5)
    go_on = Event()

    def hang(_tasks: Sequence[Task]) -> None:
        go_on.wait(20)

    kafka.put([event(0)])
    loop = kafka.loop(BatchHandler(hang))
    with running(loop):
        eventually(lambda: "has not polled" in problem_of(loop))
        go_on.set()
        eventually(lambda: not problem_of(loop))


def test_consumer_that_polls_but_finishes_nothing_is_reported(kafka: Kafka) -> None:
    """Records wait and none is finished: it is not ready until they are."""
    broken = Event()
    broken.set()

    def fail(_tasks: Sequence[Task]) -> None:
        if broken.is_set():
            raise DatabaseUnavailableError("for ever")

    kafka.put([event(0)])
    loop = kafka.loop(BatchHandler(fail))
    with running(loop):
        eventually(lambda: "finishes none" in problem_of(loop))
        broken.clear()
        eventually(lambda: not problem_of(loop))


def test_one_stuck_partition_is_reported_though_the_others_make_progress(kafka: Kafka) -> None:
    """Only that partition is named."""
    stuck = f"{clients.topic_name(kafka.settings, WORK.name)}/2"

    class Stubborn(Collector):
        def see(self, task: Task) -> None:
            if task.record.partition == 2:
                raise DatabaseUnavailableError("for this one")
            super().see(task)

    kept = Stubborn()

    class OneByOne(BatchHandler):
        """A handler that keeps what fails, so that only its own partition waits."""

        def handle(self, tasks: Sequence[Task]) -> None:
            for task in tasks:
                if task.record.partition != 2:
                    super().handle([task])

    kafka.put([event(n) for n in range(200)])
    loop = kafka.loop(OneByOne(kept))
    with running(loop):
        assert eventually(lambda: problem_of(loop)).endswith(f"finishes none in {stuck}")
        done = len(kept.seen)
        kafka.put([event(n) for n in range(40)])
        eventually(lambda: len(kept.seen) > done)
        assert problem_of(loop).endswith(f"finishes none in {stuck}")


def test_held_partition_is_not_stalled(kafka: Kafka) -> None:
    """Records of a delay topic are held by design."""

    def hold(tasks: Sequence[Task]) -> None:
        for task in tasks:
            task.hold_until(time() + 3600)

    kafka.put([event(n) for n in range(8)])
    loop = kafka.loop(BatchHandler(hold))
    with running(loop):
        eventually(loop._assignment.all)
        stays_ready(loop)


@pytest.mark.long
def test_an_idle_consumer_is_not_stalled(kafka: Kafka) -> None:
    """Whether it has consumed everything, or there never was a record."""
    loop = kafka.loop(BatchHandler(Collector()))
    with running(loop):
        eventually(loop._assignment.all)
        stays_ready(loop)
        kafka.put([event(n) for n in range(8)])
        eventually(lambda: kafka.committed() == 8)
        stays_ready(loop)


@contextmanager
def not_fetching(kafka: Kafka) -> Iterator[tuple[ConsumerLoop, Collector]]:
    """Run a loop that has consumed eight records. Its client is paused, and eight more wait in Kafka."""
    done = Collector()
    loop = kafka.loop(BatchHandler(done))
    kafka.put([event(n) for n in range(8)])
    with running(loop):
        eventually(lambda: kafka.committed() == 8)
        stop_fetching(loop)
        kafka.put([event(n) for n in range(8, 16)])
        yield loop, done


def recoveries(loop: ConsumerLoop) -> dict[str, float]:
    """Return how often the loop has recovered from a stall, by action."""
    return {action: RECOVERIES.labels(loop._group, action)._value.get() for action in ("seek", "new_client")}


def test_client_that_stopped_fetching_is_reported(kafka: Kafka) -> None:
    """The client believes it is at the end: the end offset must come from Kafka."""
    with not_fetching(kafka) as (loop, done):
        eventually(lambda: "finishes none" in problem_of(loop))
        fetch_again(loop)
        eventually(lambda: len(done.seen) == 16 and not problem_of(loop))


def test_client_that_skipped_records_is_sought_back(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads at the end of its partitions, although the records before were not handed out."""
    # Until the client has skipped them: a seek of the loop before that would be undone, and not be repeated.
    monkeypatch.setattr(stall_recovery, "SEEK_AFTER_S", inf)
    monkeypatch.setattr(stall_recovery, "REPLACE_AFTER_S", inf)
    with not_fetching(kafka) as (loop, done):
        for partition in topic_partitions(loop._assignment.all()):
            _, partition.offset = loop._consumer.get_watermark_offsets(partition)
            loop._consumer.seek(partition)
        fetch_again(loop)
        monkeypatch.setattr(stall_recovery, "SEEK_AFTER_S", 0.5)
        eventually(lambda: kafka.committed() == 16)
    assert sorted(done.seen) == list(range(16))
    assert recoveries(loop)["seek"] > 0


def test_client_that_stopped_fetching_is_replaced(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seek does not help. Everything is consumed, once, and nobody has to restart the process."""
    monkeypatch.setattr(stall_recovery, "SEEK_AFTER_S", 0.5)
    monkeypatch.setattr(stall_recovery, "REPLACE_AFTER_S", 0.5)
    with not_fetching(kafka) as (loop, done):
        eventually(lambda: kafka.committed() == 16)
        assert sorted(done.seen) == list(range(16))
        assert recoveries(loop)["new_client"] >= 1
        eventually(lambda: not problem_of(loop))


def test_records_that_wait_in_the_client_are_not_taken_for_stalled(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: behind the records of other partitions, they waited longer than the limit.

    The seek threw them away, and once they were fetched again, they waited at the end of the client's queue.
    """
    monkeypatch.setattr(progress, "_OBSERVE_EVERY_S", 0.0)
    monkeypatch.setattr(progress, "_STALE_AFTER_S", 60.0)
    monkeypatch.setattr(stall_recovery, "SEEK_AFTER_S", inf)
    monkeypatch.setattr(consumer_loop, "_MAX_READY", 1)
    done = Collector()
    is_blocked, go_on = Event(), Event()

    def handle(tasks: Sequence[Task]) -> None:
        done(tasks)
        if len(done.seen) == 9:
            is_blocked.set()
            assert go_on.wait(40)

    loop = kafka.loop(BatchHandler(handle))
    kafka.put([event(n) for n in range(8)])
    with running(loop):
        eventually(lambda: kafka.committed() == 8)
        kafka.put([event(8)])
        assert is_blocked.wait(40)
        kafka.put([event(n) for n in range(9, 17)])
        eventually(lambda: fetched_by(loop) == 17)
        monkeypatch.setattr(stall_recovery, "SEEK_AFTER_S", 0.0)
        go_on.set()
        eventually(lambda: len(done.seen) >= 17)
        monkeypatch.setattr(stall_recovery, "SEEK_AFTER_S", inf)
    assert sorted(done.seen) == list(range(17))
    assert recoveries(loop) == {"seek": 0, "new_client": 0}


def fetched_by(loop: ConsumerLoop) -> int:
    """Return how many records the client knows, over all partitions; those that were not handed out wait in it."""
    partitions = topic_partitions(loop._assignment.all())
    return sum(loop._consumer.get_watermark_offsets(each, cached=True)[1] for each in partitions)


def test_partition_in_progress_is_not_taken_for_stalled(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler that works, and an outage that every record waits for: neither a seek nor a new client helps."""
    tries = 0

    def fail(_tasks: Sequence[Task]) -> None:
        nonlocal tries
        tries += 1
        raise DatabaseUnavailableError("for ever")

    kafka.put([event(n) for n in range(8)])
    loop = kafka.loop(BatchHandler(fail))
    with running(loop):
        eventually(lambda: tries)
        monkeypatch.setattr(stall_recovery, "SEEK_AFTER_S", 0.2)
        eventually(lambda: tries >= 5)
        assert recoveries(loop) == {"seek": 0, "new_client": 0}


@pytest.mark.long
def test_client_that_never_fetched_is_reported(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no position yet. Records that its group has already committed are not lag."""
    kafka.put([event(n) for n in range(8)])
    with running(kafka.loop(BatchHandler(Collector()))):
        eventually(lambda: kafka.committed() == 8)
    loop = kafka.loop(BatchHandler(Collector()))
    assigned = loop._assigned

    def assigned_and_silent(consumer: object, partitions: list[object]) -> None:
        assigned(consumer, partitions)  # type: ignore[arg-type]
        loop._consumer.incremental_assign(partitions)  # type: ignore[arg-type]
        stop_fetching(loop)

    monkeypatch.setattr(loop, "_assigned", assigned_and_silent)
    monkeypatch.setattr(loop._assignment, "set_pauses", lambda _consumer: None)
    with running(loop):
        eventually(loop._assignment.all)
        stays_ready(loop)
        kafka.put([event(n) for n in range(8)])
        eventually(lambda: "finishes none" in problem_of(loop))
        fetch_again(loop)
        eventually(lambda: kafka.committed() == 16 and not problem_of(loop))


def test_poison_message_that_cannot_be_dead_lettered_is_reported(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its partition is held for one retry after another, which is not progress."""
    dead_letters = KafkaDeadLetterProducer(kafka.settings)
    send = dead_letters.send

    def refuse(_records: Sequence[tuple[Record, str]], _group: str) -> NoReturn:
        raise KafkaUnavailableError("full")

    monkeypatch.setattr(dead_letters, "send", refuse)
    loop = ConsumerLoop(
        kafka.settings, GROUP, [WORK.name], BatchHandler(Collector()), dead_letters, decode=decode
    )
    kafka.put([b"nobody can read this"])
    with running(loop):
        eventually(lambda: "finishes none" in problem_of(loop))
        monkeypatch.setattr(dead_letters, "send", send)
        eventually(lambda: not problem_of(loop))


@pytest.mark.kills
def test_consumer_that_cannot_determine_its_lag_is_reported(
    kafka: Kafka, killable_engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows of no lag, but Kafka does not respond: it is not ready until Kafka does."""
    monkeypatch.setattr(progress, "STALE_LIMIT_S", 2.0)
    loop = kafka.loop(BatchHandler(Collector()))
    with running(loop):
        eventually(loop._assignment.all)
        stays_ready(loop)
        killable_engines.kafka.suspend()
        try:
            eventually(lambda: "cannot learn" in problem_of(loop))
        finally:
            killable_engines.kafka.resume()
        eventually(lambda: not problem_of(loop))


@pytest.fixture
def quick_kafka(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Kafka:
    """Its clients tell their state ten times a second. Each test sets how long they may take to join their group."""
    monkeypatch.setattr(stall_recovery, "JOIN_LIMIT_S", inf)
    monkeypatch.setattr(recreated_topics, "_CHECK_EVERY_S", 0.1)
    kafka.settings = replace(
        kafka.settings, client={**kafka.settings.client, "statistics.interval.ms": "100"}
    )
    return kafka


def never_join(loop: ConsumerLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first client stays outside the group, as one that waits for ever for the coordinator."""
    subscribe = loop._subscribe
    monkeypatch.setattr(loop, "_subscribe", lambda: monkeypatch.setattr(loop, "_subscribe", subscribe))


def test_client_that_never_joins_its_group_is_replaced(
    quick_kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = Collector()
    loop = quick_kafka.loop(BatchHandler(done))
    never_join(loop, monkeypatch)
    monkeypatch.setattr(stall_recovery, "JOIN_LIMIT_S", 1.0)
    quick_kafka.put([event(n) for n in range(8)])
    with running(loop):
        eventually(lambda: recoveries(loop)["new_client"])
        monkeypatch.setattr(stall_recovery, "JOIN_LIMIT_S", inf)
        eventually(lambda: quick_kafka.committed() == 8)
    assert sorted(done.seen) == list(range(8))


def test_member_without_partitions_is_in_its_group(quick_kafka: Kafka) -> None:
    """The group has one consumer more than the topic has partitions. That one must not be replaced."""
    loops = [quick_kafka.loop(BatchHandler(Collector())) for _ in range(WORK.partitions + 1)]
    with running(*loops):
        eventually(lambda: quick_kafka.members() == WORK.partitions and quick_kafka.joined() == len(loops))
        idle = eventually(lambda: next((each for each in loops if not each._assignment.all()), None))
        idle._membership._outside_since = monotonic()
        eventually(lambda: idle._membership._outside_since is None)


@pytest.mark.kills
def test_client_outside_its_group_is_kept_while_kafka_does_not_respond(
    quick_kafka: Kafka, killable_engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new one could not join either."""
    monkeypatch.setattr(admin, "_RECENT_S", 1.0)
    loop = quick_kafka.loop(BatchHandler(Collector()))
    with running(loop):
        eventually(loop._assignment.all)
        monkeypatch.setattr(stall_recovery, "JOIN_LIMIT_S", 2.0)
        killable_engines.kafka.suspend()
        try:
            eventually(lambda: not loop._assignment.all())
            until = monotonic() + 4.0
            eventually(lambda: monotonic() > until)
            # Once Kafka responds, it can take longer to join: the group waits for its lost member.
            monkeypatch.setattr(stall_recovery, "JOIN_LIMIT_S", inf)
        finally:
            killable_engines.kafka.resume()
        eventually(loop._assignment.all)
    assert recoveries(loop)["new_client"] == 0
