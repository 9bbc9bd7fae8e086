"""What a consumer does with its records. The loop does everything else: reading, retries, dead letters, commits."""

from collections.abc import Callable, Sequence
from typing import Protocol

from shared.platform.kafka.records import AssignedPartition, Record, Task


class Handler(Protocol):
    """Processes tasks. It finishes, holds or rejects a task in `handle`, or keeps it to finish or requeue it later."""

    def capacity(self) -> int:
        """Return how many more tasks it can take now."""

    def handle(self, tasks: Sequence[Task]) -> None:
        """Take these tasks. An exception requeues every task of this call that is not done."""

    def poll(self, wait_s: float) -> bool:
        """Continue work on kept tasks, for at most `wait_s`. Return whether there are any.

        While there are, the loop does not wait for new records.
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

    def poll(self, wait_s: float) -> bool:  # noqa: ARG002  it keeps nothing
        return False

    def drain(self, partitions: Sequence[AssignedPartition]) -> None:
        """Do nothing: no task is kept between two calls."""

    def discard(self, partitions: Sequence[AssignedPartition]) -> None:
        """Do nothing: no task is kept between two calls."""
