"""Tasks that a handler keeps and finishes later, in any order: offsets never pass an unfinished one."""

from collections.abc import Sequence
from math import inf

from shared.platform.database.pool import DatabaseUnavailableError
from shared.platform.kafka.handlers import BatchHandler
from shared.platform.kafka.records import AssignedPartition, Task
from tests.shared.platform.kafka.harness import Collector, Kafka, event, running, seq
from tests.waiting import eventually


class InAnyOrder:
    """A handler that keeps tasks and finishes them later, the latest first, and one of them never."""

    def __init__(self, never: int | None = None) -> None:
        self.taken: list[Task] = []
        self.finished: list[int] = []
        self._never = never

    def capacity(self) -> int:
        return 100 - len(self.taken)

    def handle(self, tasks: Sequence[Task]) -> None:
        self.taken.extend(tasks)

    def poll(self, wait_s: float) -> float:
        for task in reversed(self.taken[-3:]):
            self._finish(task)
        return 0 if any(seq(task) != self._never for task in self.taken) else inf

    def drain(self, partitions: Sequence[AssignedPartition]) -> None:
        for task in [task for task in self.taken if task.partition in partitions]:
            self._finish(task)

    def discard(self, partitions: Sequence[AssignedPartition]) -> None:
        self.taken = [task for task in self.taken if task.partition not in partitions]

    def _finish(self, task: Task) -> None:
        if seq(task) == self._never:
            return
        self.taken.remove(task)
        self.finished.append(seq(task))
        task.done()


def test_committed_offset_never_passes_an_unfinished_record(kafka: Kafka) -> None:
    """The 31st of 60 never finishes: exactly 30 are committed, and the next process starts with it."""
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


def test_graceful_stop_finishes_tasks_in_flight(kafka: Kafka) -> None:
    """After a restart, no finished record is handled again."""
    kafka.put([event(n) for n in range(300)])
    first = InAnyOrder()
    with running(kafka.loop(first)):
        eventually(lambda: len(first.finished) > 50)
    assert not first.taken
    second = Collector()
    with running(kafka.loop(BatchHandler(second))):
        eventually(lambda: kafka.committed() == 300)
    assert sorted(first.finished + second.seen) == list(range(300))


def test_handler_without_capacity_gets_no_tasks(kafka: Kafka) -> None:
    """Backpressure: it never has more tasks than its capacity."""

    class Narrow(InAnyOrder):
        most = 0

        def capacity(self) -> int:
            return 7 - len(self.taken)

        def handle(self, tasks: Sequence[Task]) -> None:
            super().handle(tasks)
            self.most = max(self.most, len(self.taken))

    kafka.put([event(n) for n in range(400)])
    handler = Narrow()
    with running(kafka.loop(handler)):
        eventually(lambda: kafka.committed() == 400)
    assert handler.most == 7


def test_kept_task_can_be_requeued(kafka: Kafka) -> None:
    """Its failures count as usual: it is retried in place, and becomes a dead letter after the third."""

    class Clumsy(InAnyOrder):
        drops = 0

        def poll(self, wait_s: float) -> float:
            for task in list(self.taken):
                if seq(task) == 3:
                    self.taken.remove(task)
                    self.drops += 1
                    task.requeue(ZeroDivisionError("slipped"))
            return super().poll(wait_s)

    kafka.put([event(n) for n in range(10)], key="same-partition")
    handler = Clumsy()
    with running(kafka.loop(handler)):
        eventually(lambda: kafka.committed() == 10)
    assert handler.drops == 3
    assert sorted(handler.finished) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert ["slipped" in letter.reason for letter in kafka.dead_letters()] == [True]


def test_loop_survives_an_outage_in_the_handlers_poll(kafka: Kafka) -> None:
    """If `poll` of the handler raises, it is called again later."""

    class Unlucky(InAnyOrder):
        outages = 3

        def poll(self, wait_s: float) -> float:
            if self.taken and self.outages:
                self.outages -= 1
                raise DatabaseUnavailableError("gone fishing")
            return super().poll(wait_s)

    kafka.put([event(n) for n in range(20)])
    handler = Unlucky()
    with running(kafka.loop(handler)):
        eventually(lambda: kafka.committed() == 20)
    assert handler.outages == 0


def test_handler_that_fails_to_drain_still_gives_up_its_partitions(kafka: Kafka) -> None:
    """Finished records are committed; the rest is left to the next owner."""

    class Stubborn(InAnyOrder):
        def drain(self, partitions: Sequence[AssignedPartition]) -> None:
            raise RuntimeError("never")

    kafka.put([event(n) for n in range(100)], key="same-partition")
    handler = Stubborn(never=50)
    with running(kafka.loop(handler)):
        eventually(lambda: len(handler.finished) == 99)
    assert kafka.committed() == 50
