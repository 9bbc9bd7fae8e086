"""What a consumer does with its records. The loop owns everything else: reading, retries, commits."""

from collections.abc import Callable, Sequence
from typing import Protocol

from shared.platform.kafka.records import Lane, Record, Task


class Handler(Protocol):
    """Finishes a task inside `take`, holds it there, or keeps it and finishes it or gives it back later."""

    def room(self) -> int:
        """How many more tasks it can take now."""

    def take(self, tasks: Sequence[Task]) -> None:
        """Raising gives back every task of this call that is not done."""

    def turn(self, wait_s: float) -> bool:
        """Lets kept work go on, for at most `wait_s`. True: there is some, so do not wait for records."""

    def settle(self, lanes: Sequence[Lane]) -> None:
        """These partitions go away: finish what can be finished soon, let go of the rest."""

    def drop(self, lanes: Sequence[Lane]) -> None:
        """These partitions already belong to somebody else: let go of what is kept of them."""


class DeadLetterBox(Protocol):
    def put(self, letters: Sequence[tuple[Record, str]], group: str) -> None:
        """Records and reasons. Returns when all are safe; raises KafkaUnavailableError when they are not."""


class BatchHandler:
    """The plain case: a function that handles a batch; when it returns, the batch is done."""

    def __init__(self, handle: Callable[[Sequence[Task]], None], size: int = 500) -> None:
        self._handle = handle
        self._size = size

    def room(self) -> int:
        return self._size

    def take(self, tasks: Sequence[Task]) -> None:
        self._handle(tasks)
        for task in tasks:
            if not task.held_until:
                task.done()

    def turn(self, wait_s: float) -> bool:  # noqa: ARG002  it keeps nothing
        return False

    def settle(self, lanes: Sequence[Lane]) -> None:
        """Nothing is ever kept between two calls."""

    def drop(self, lanes: Sequence[Lane]) -> None:
        """Nothing is ever kept between two calls."""
