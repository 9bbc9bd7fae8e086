"""The consumer loop is killed, rebalanced or disconnected under load: no record is lost."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Lock
from time import sleep, time

import pytest

from shared.platform.kafka.handlers import BatchHandler
from shared.platform.kafka.records import Task
from stack.engines import Engines
from tests.shared.platform.kafka.harness import Kafka, event, running, seq
from tests.waiting import eventually

ALL = 2_000


class Slow:
    """Handles a batch in some milliseconds and counts each event, over several consumers."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self._lock = Lock()

    def handler(self) -> BatchHandler:
        return BatchHandler(self._handle, size=25)

    def _handle(self, tasks: Sequence[Task]) -> None:
        sleep(0.01)  # the work itself
        with self._lock:
            self.counts.update(seq(task) for task in tasks)


def _worker(kafka: Kafka, root: Path, output: Path) -> "subprocess.Popen[bytes]":
    settings = kafka.settings
    login = json.dumps(dict(settings.client))
    arguments = [settings.bootstrap_servers, settings.topic_prefix, login, str(output)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.shared.platform.kafka.worker", *arguments], cwd=root
    )


def _handled(output: Path) -> list[int]:
    return [int(line) for line in output.read_text().splitlines()] if output.exists() else []


@pytest.mark.kills
def test_records_of_a_killed_consumer_are_handled_by_the_next(
    kafka: Kafka, repository_root: Path, tmp_path: Path
) -> None:
    """After kill -9 another process continues: every record is handled, and few of them twice."""
    output = tmp_path / "handled"
    kafka.put([event(n) for n in range(ALL)])
    first = _worker(kafka, repository_root, output)
    eventually(lambda: len(_handled(output)) > ALL // 4)
    first.kill()
    first.wait()
    assert len(_handled(output)) < ALL
    second = _worker(kafka, repository_root, output)
    try:
        eventually(lambda: set(_handled(output)) == set(range(ALL)), within=40)
        eventually(lambda: kafka.committed() == ALL)
    finally:
        second.terminate()
        second.wait()
    assert len(_handled(output)) < ALL + 1_000


def test_rebalance_under_load_handles_every_record_once(kafka: Kafka) -> None:
    """Consumers join and leave. Partitions are given up only after finished records are committed."""
    work = Slow()
    kafka.put([event(n) for n in range(ALL)])
    with running(kafka.loop(work.handler())):
        eventually(lambda: len(work.counts) > 50)
        with running(kafka.loop(work.handler()), kafka.loop(work.handler())):
            eventually(lambda: kafka.members() == 3)
            kafka.put([event(n) for n in range(ALL, 2 * ALL)])
        eventually(lambda: kafka.committed() == 2 * ALL, within=40)
    assert set(work.counts) == set(range(2 * ALL))
    assert set(work.counts.values()) == {1}


@pytest.mark.parametrize(
    "after", [pytest.param(0.4, marks=pytest.mark.long), pytest.param(1.2, marks=pytest.mark.long), 2.0]
)
def test_consumers_that_stop_during_a_rebalance_commit_what_they_finished(kafka: Kafka, after: float) -> None:
    """As in a rolling upgrade. Commits fail during a rebalance and are retried, so that nothing finished is done
    twice.
    """
    work = Slow()
    kafka.put([event(n) for n in range(10 * ALL)])
    with running(kafka.loop(work.handler())):
        eventually(lambda: len(work.counts) > 200)
        with running(kafka.loop(work.handler()), kafka.loop(work.handler())):
            sleep(after)  # stop in the middle of the rebalance
    assert kafka.committed() == len(work.counts)
    assert set(work.counts.values()) == {1}


def test_finished_records_are_committed_despite_a_rebalance(kafka: Kafka) -> None:
    """A commit that failed during the rebalance is retried, also when no further record arrives."""
    work = Slow()
    kafka.put([event(n) for n in range(2 * ALL)])
    with running(kafka.loop(work.handler())):
        eventually(lambda: len(work.counts) > ALL)
        with running(kafka.loop(work.handler()), kafka.loop(work.handler())):
            eventually(lambda: len(work.counts) == 2 * ALL)
            eventually(lambda: kafka.committed() == 2 * ALL)


def test_records_of_a_held_partition_are_handled_once_across_rebalances(kafka: Kafka) -> None:
    """It is paused, moves to another consumer and back; its records are handled when due, in order."""
    due = Event()
    moved: list[int] = []

    def handle(tasks: Sequence[Task]) -> None:
        for task in tasks:
            if due.is_set():
                moved.append(seq(task))
            else:
                task.hold_until(time() + 1)

    keys = {key: list(range(key * 100, key * 100 + 20)) for key in range(8)}  # records in every partition
    for key, numbers in keys.items():
        kafka.put([event(n) for n in numbers], key=str(key))
    with running(kafka.loop(BatchHandler(handle))):
        eventually(lambda: kafka.members() == 1)
        with running(kafka.loop(BatchHandler(handle))):
            eventually(lambda: kafka.members() == 2)
        eventually(lambda: kafka.members() == 1)
        assert not moved
        due.set()
        eventually(lambda: kafka.committed() == 160)
    assert sorted(moved) == sorted(n for numbers in keys.values() for n in numbers)
    for expected in keys.values():
        assert [n for n in moved if n in expected] == expected


@pytest.mark.kills
def test_consumers_recover_after_the_broker_is_killed(killable_engines: Engines, kafka: Kafka) -> None:
    """They wait for its return and continue by themselves."""
    work = Slow()
    kafka.put([event(n) for n in range(ALL)])
    with running(kafka.loop(work.handler())):
        eventually(lambda: len(work.counts) > 50)
        killable_engines.kafka.kill()
        killable_engines.kafka.start()
        kafka.put([event(n) for n in range(ALL, ALL + 100)])
        eventually(lambda: kafka.committed() == ALL + 100, within=60)
    assert set(work.counts) == set(range(ALL + 100))
