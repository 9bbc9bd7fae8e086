"""What a consumer does with its records. The loop does everything else: reading, retries, dead letters, commits."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from math import inf
from time import monotonic
from typing import Protocol

from shared.platform.database.pool import DatabaseUnavailableError, StatementTimeoutError
from shared.platform.encryption import KeysUnavailableError
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.records import AssignedPartition, Record, Task

_DRAIN_S = 5.0


def is_transient(error: BaseException) -> bool:
    """Tell whether every record would meet this error now, and it will pass.

    A statement that took too long does not count: a batch of fewer records may work.
    """
    return isinstance(
        error, DatabaseUnavailableError | KafkaUnavailableError | KeysUnavailableError
    ) and not isinstance(error, StatementTimeoutError)


class Handler(Protocol):
    """Processes tasks. It finishes, holds or rejects a task in `handle`, or keeps it to finish or requeue it later."""

    def capacity(self) -> int:
        """Return how many more tasks it can take now."""

    def handle(self, tasks: Sequence[Task]) -> None:
        """Take these tasks. An exception requeues every task of this call that is not done."""

    def poll(self, wait_s: float) -> float:
        """Continue work on kept tasks, for at most `wait_s`. Return how many seconds it can be left alone after that.

        So long the loop waits for new records. It is infinite if there are no kept tasks.
        """

    def drain(self, partitions: Sequence[AssignedPartition]) -> None:
        """Finish what can be finished soon and discard the rest: these partitions are about to be revoked."""

    def discard(self, partitions: Sequence[AssignedPartition]) -> None:
        """Discard what is kept of these partitions: they already belong to another consumer."""


class DeadLetterProducer(Protocol):
    def send(self, poison: Sequence[tuple[Record, str]], group: str) -> None:
        """Send records with the reason why `group` gave up on each.

        Returns when Kafka has confirmed all of them; raises KafkaUnavailableError when it does not.
        """


class BatchHandler:
    """The plain case: a function that handles a batch. When it returns, all it has not held or rejected is done."""

    def __init__(self, handle: Callable[[Sequence[Task]], None], size: int = 500) -> None:
        self._handle = handle
        self._size = size

    def capacity(self) -> int:
        return self._size

    def handle(self, tasks: Sequence[Task]) -> None:
        self._handle(tasks)
        for task in tasks:
            if not task.held_until and task.poison_reason is None:
                task.done()

    def poll(self, wait_s: float) -> float:  # noqa: ARG002  it keeps nothing
        return inf

    def drain(self, partitions: Sequence[AssignedPartition]) -> None:
        """Do nothing: no task is kept between two calls."""

    def discard(self, partitions: Sequence[AssignedPartition]) -> None:
        """Do nothing: no task is kept between two calls."""


class ThreadPoolHandler:
    """Calls a function for each record, in a thread of its own: a slow call holds up no other record.

    A call whose partition is revoked goes on, and its result is ignored: the function must bear a repetition.
    """

    def __init__(self, handle: Callable[[Task], None], threads: int) -> None:
        self._handle = handle
        self._size = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="handler")
        self._running: dict[Future[None], Task | None] = {}
        """The calls in progress; without their task if its partition was revoked."""

    def capacity(self) -> int:
        return self._size - len(self._running)

    def handle(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            self._running[self._pool.submit(self._handle, task)] = task

    def poll(self, wait_s: float) -> float:
        if not self._running:
            return inf
        for call in wait(self._running, wait_s, FIRST_COMPLETED).done:
            task, error = self._running.pop(call), call.exception()
            if task is None:
                continue
            if error is None:
                task.done()
            else:
                task.requeue(error if isinstance(error, Exception) else RuntimeError(repr(error)))
        return 0 if self._running else inf

    def drain(self, partitions: Sequence[AssignedPartition]) -> None:
        deadline = monotonic() + _DRAIN_S
        while self._calls_of(partitions) and (left := deadline - monotonic()) > 0:
            self.poll(left)
        self.discard(partitions)

    def discard(self, partitions: Sequence[AssignedPartition]) -> None:
        for call in self._calls_of(partitions):
            self._running[call] = None

    def close(self) -> None:
        self._pool.shutdown()

    def _calls_of(self, partitions: Sequence[AssignedPartition]) -> list[Future[None]]:
        return [call for call, task in self._running.items() if task and task.partition in partitions]
