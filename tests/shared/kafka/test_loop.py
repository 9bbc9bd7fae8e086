"""The consumer loop on the real Kafka: in order, nothing lost, offsets last."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from threading import Event
from time import monotonic, sleep, time

import pytest

from shared.db.pool import DatabaseUnavailableError
from shared.kafka import progress
from shared.kafka.handlers import BatchHandler
from shared.kafka.progress import ConsumerStalledError
from shared.kafka.tasks import Lane, Task
from tests.shared.kafka.harness import Kafka, event, running, seq
from tests.waiting import eventually


class Collector:
    """A handler's function that remembers what it saw."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.by_partition: dict[int, list[int]] = defaultdict(list)

    def __call__(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            self.see(task)

    def see(self, task: Task) -> None:
        self.seen.append(seq(task))
        self.by_partition[task.record.partition].append(task.record.offset)


def test_everything_is_handled_once_in_order_and_committed(kafka: Kafka) -> None:
    """The plain day: each partition in its order, every offset committed, nothing seen again by the next."""
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


def test_what_cannot_be_read_goes_to_the_dead_letters(kafka: Kafka) -> None:
    """A poison message stops nobody, and is kept whole with its origin and the reason."""
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


def test_a_record_that_fails_three_times_goes_to_the_dead_letters(kafka: Kafka) -> None:
    """The others of its batch are handled, before and after it, in their order."""
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


def test_an_outage_is_waited_for_in_place(kafka: Kafka) -> None:
    """The database is away: the same records are tried again while polling goes on; none is dead, none lost."""
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


def test_a_held_record_comes_when_it_is_due_and_not_before(kafka: Kafka) -> None:
    """Its partition waits behind it, other partitions do not, and nothing is skipped."""
    due_at = time() + 2.5
    moved: dict[int, float] = {}

    def handle(tasks: Sequence[Task]) -> None:
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
    assert max(moved[n] for n in range(5)) < due_at + 1
    assert [n for n in moved if n < 5] == [0, 1, 2, 3, 4]


class InAnyOrder:
    """Keeps tasks and finishes them later, the latest first; one it never finishes."""

    def __init__(self, never: int | None = None) -> None:
        self.taken: list[Task] = []
        self.finished: list[int] = []
        self._never = never

    def room(self) -> int:
        return 100 - len(self.taken)

    def take(self, tasks: Sequence[Task]) -> None:
        self.taken.extend(tasks)

    def turn(self, wait_s: float) -> bool:
        for task in reversed(self.taken[-3:]):
            self._finish(task)
        return any(seq(task) != self._never for task in self.taken)

    def settle(self, lanes: Sequence[Lane]) -> None:
        for task in [task for task in self.taken if task.lane in lanes]:
            self._finish(task)

    def drop(self, lanes: Sequence[Lane]) -> None:
        self.taken = [task for task in self.taken if task.lane not in lanes]

    def _finish(self, task: Task) -> None:
        if seq(task) == self._never:
            return
        self.taken.remove(task)
        self.finished.append(seq(task))
        task.done()


def test_records_may_finish_in_any_order_but_offsets_never_pass_an_unfinished_one(kafka: Kafka) -> None:
    """The 31st of 60 never finishes: exactly 30 are committed, and the next process begins with it."""
    kafka.put([event(n) for n in range(60)], key="same-partition")
    handler = InAnyOrder(never=30)
    with running(kafka.loop(handler)):
        eventually(lambda: len(handler.finished) == 59)
        eventually(lambda: kafka.committed() == 30)
    assert handler.finished != sorted(handler.finished)
    assert kafka.committed() == 30

    collector = Collector()
    with running(kafka.loop(BatchHandler(collector))):
        eventually(lambda: kafka.committed() == 60)
    assert collector.seen == list(range(30, 60))


def test_a_graceful_stop_finishes_what_is_in_flight(kafka: Kafka) -> None:
    """After a stop nothing that was finished is done again."""
    kafka.put([event(n) for n in range(300)])
    first = InAnyOrder()
    with running(kafka.loop(first)):
        eventually(lambda: len(first.finished) > 50)
    assert not first.taken
    second = Collector()
    with running(kafka.loop(BatchHandler(second))):
        eventually(lambda: kafka.committed() == 300)
    assert sorted(first.finished + second.seen) == list(range(300))


def test_a_handler_without_room_is_not_overrun(kafka: Kafka) -> None:
    """Back-pressure: never more in its hands than it said it can take."""

    class Narrow(InAnyOrder):
        most = 0

        def room(self) -> int:
            return 7 - len(self.taken)

        def take(self, tasks: Sequence[Task]) -> None:
            super().take(tasks)
            self.most = max(self.most, len(self.taken))

    kafka.put([event(n) for n in range(400)])
    handler = Narrow()
    with running(kafka.loop(handler)):
        eventually(lambda: kafka.committed() == 400)
    assert handler.most == 7


def test_a_kept_record_can_be_given_back(kafka: Kafka) -> None:
    """Its failures count like any other's: retried in place, and after the third it goes to the dead letters."""

    class Clumsy(InAnyOrder):
        drops = 0

        def turn(self, wait_s: float) -> bool:
            for task in list(self.taken):
                if seq(task) == 3:
                    self.taken.remove(task)
                    self.drops += 1
                    task.give_back(ZeroDivisionError("slipped"))
            return super().turn(wait_s)

    kafka.put([event(n) for n in range(10)], key="same-partition")
    handler = Clumsy()
    with running(kafka.loop(handler)):
        eventually(lambda: kafka.committed() == 10)
    assert handler.drops == 3
    assert sorted(handler.finished) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert ["slipped" in letter.reason for letter in kafka.dead_letters()] == [True]


def test_an_outage_while_kept_work_goes_on(kafka: Kafka) -> None:
    """The handler's own turn meets it: it is asked again later, and the loop lives."""

    class Unlucky(InAnyOrder):
        outages = 3

        def turn(self, wait_s: float) -> bool:
            if self.taken and self.outages:
                self.outages -= 1
                raise DatabaseUnavailableError("gone fishing")
            return super().turn(wait_s)

    kafka.put([event(n) for n in range(20)])
    handler = Unlucky()
    with running(kafka.loop(handler)):
        eventually(lambda: kafka.committed() == 20)
    assert handler.outages == 0


def test_a_handler_that_cannot_settle_still_lets_go(kafka: Kafka) -> None:
    """What was finished is committed; the rest is for the next owner."""

    class Stubborn(InAnyOrder):
        def settle(self, lanes: Sequence[Lane]) -> None:
            raise RuntimeError("never")

    kafka.put([event(n) for n in range(100)], key="same-partition")
    handler = Stubborn(never=50)
    with running(kafka.loop(handler)):
        eventually(lambda: len(handler.finished) == 99)
    assert kafka.committed() == 50


def test_a_poison_record_may_be_large(kafka: Kafka) -> None:
    """It grows on its way into a dead letter; it must not grow so large that it blocks everything behind it."""
    kafka.put([b"x" * 900_000, event(0), event(1)], key="same-partition")
    collector = Collector()
    with running(kafka.loop(BatchHandler(collector))):
        eventually(lambda: kafka.committed() == 3)
    assert collector.seen == [0, 1]
    (letter,) = kafka.dead_letters()
    assert letter.value == b"x" * 900_000


def test_a_failing_record_holds_up_only_its_own_partition(kafka: Kafka) -> None:
    """While one is tried again, the others go on."""
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


def test_waiting_costs_one_look_per_record(kafka: Kafka) -> None:
    """A held record is handed out when it comes and when it is due, however many become due before it."""
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
    """A handler that is slower than Kafka: what it cannot take yet waits, and is not thrown away and fetched again."""
    fetched = 0

    def count(statistics: str) -> None:
        nonlocal fetched
        topics = json.loads(statistics)["topics"].values()
        fetched = sum(part["rxmsgs"] for topic in topics for part in topic["partitions"].values())

    def slow(_tasks: Sequence[Task]) -> None:
        sleep(0.03)  # the work itself

    kafka.put([event(n) for n in range(20_000)])
    client = {**kafka.settings.client, "statistics.interval.ms": "200", "stats_cb": count}
    kafka.settings = replace(kafka.settings, client=client)  # type: ignore[arg-type]
    with running(kafka.loop(BatchHandler(slow))):
        eventually(lambda: kafka.committed() == 20_000)
        eventually(lambda: fetched >= 20_000)
    assert fetched == 20_000


def test_a_consumer_that_stopped_consuming_is_noticed(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that hangs: the process looks healthy, but the heartbeat says it is not."""
    monkeypatch.setattr(progress, "POLL_LIMIT_S", 0.5)
    go_on = Event()

    def hang(_tasks: Sequence[Task]) -> None:
        go_on.wait(20)

    kafka.put([event(0)])
    loop = kafka.loop(BatchHandler(hang))
    with running(loop):
        eventually(lambda: _stalled(loop.progress, "has not polled"))
        go_on.set()
        eventually(lambda: not _stalled(loop.progress, ""))


def test_a_consumer_that_polls_but_finishes_nothing_is_noticed(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records wait, none gets done: not ready. A partition that is merely held is fine."""
    monkeypatch.setattr(progress, "STALL_LIMIT_S", 1.5)

    def fail(_tasks: Sequence[Task]) -> None:
        raise DatabaseUnavailableError("for ever")

    def hold(tasks: Sequence[Task]) -> None:
        for task in tasks:
            task.hold_until(time() + 3600)

    kafka.put([event(0)])
    failing = kafka.loop(BatchHandler(fail))
    with running(failing):
        eventually(lambda: _stalled(failing.progress, "finishes none"))
    holding = kafka.loop(BatchHandler(hold))
    with running(holding):
        until = monotonic() + 4
        eventually(lambda: _stalled(holding.progress, "") or monotonic() > until)
        assert not _stalled(holding.progress, "")


def _stalled(of: progress.Progress, saying: str) -> bool:
    try:
        of.check()
    except ConsumerStalledError as error:
        return saying in str(error)
    return False
