"""What a consumer does with its records. The loop owns everything else: reading, retries, commits."""

from collections.abc import Callable, Sequence
from typing import Protocol

from shared.kafka.tasks import Lane, Task


class Handler(Protocol):
    """May finish a task inside `take`, hold it, or keep it and finish it during a later `turn`."""

    def room(self) -> int:
        """How many more tasks it can take now."""

    def take(self, tasks: Sequence[Task]) -> None:
        """Raising gives back every task of this call that is neither done nor held."""

    def turn(self) -> bool:
        """Lets kept work go on for a moment. True: there is some, so do not wait for records."""

    def settle(self, lanes: Sequence[Lane]) -> None:
        """These partitions go away: finish what can be finished soon, let go of the rest."""


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
            if task.held_until is None:
                task.done()

    def turn(self) -> bool:
        return False

    def settle(self, lanes: Sequence[Lane]) -> None:
        """Nothing is ever in flight between two calls."""
