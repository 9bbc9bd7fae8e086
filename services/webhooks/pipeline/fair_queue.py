"""A queue in which applications take turns, so that a burst of one does not hold up the others."""

from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")

_SHARED_BATCH = 100
"""If several applications added something lately, batches are no larger: what arrives waits for the one in progress."""
_SHARED_FOR_S = 1.0


class FairQueue(Generic[T]):
    """What one application adds is first in, first out. A batch takes as much of each as it has, or the same share."""

    def __init__(self, application_of: Callable[[T], str]) -> None:
        self._application_of = application_of
        self._waiting: dict[str, deque[T]] = {}
        """By application, in the order in which they are served."""
        self._length = 0
        self._last_application: str | None = None
        self._changed_at = float("-inf")
        """When the application last differed from the one before (monotonic clock)."""

    def __len__(self) -> int:
        return self._length

    def add(self, item: T) -> None:
        application = self._application_of(item)
        if application != self._last_application:
            if self._last_application is not None:
                self._changed_at = monotonic()
            self._last_application = application
        self._waiting.setdefault(application, deque()).append(item)
        self._length += 1

    def next_batch(self, limit: int) -> list[T]:
        if monotonic() - self._changed_at < _SHARED_FOR_S:
            limit = min(limit, _SHARED_BATCH)
        batch: list[T] = []
        while self._waiting and len(batch) < limit:
            share = max(1, (limit - len(batch)) // len(self._waiting))
            for application, items in list(self._waiting.items()):
                if len(batch) == limit:
                    break
                batch += [items.popleft() for _ in range(min(share, len(items), limit - len(batch)))]
                del self._waiting[application]
                if items:
                    self._waiting[application] = items  # served last from now on
        self._length -= len(batch)
        return batch

    def requeue(self, items: Sequence[T]) -> None:
        """Put items back at the front, in their order. Their applications are served next."""
        returned: dict[str, deque[T]] = {}
        for item in items:
            returned.setdefault(self._application_of(item), deque()).append(item)
        for application, first in returned.items():
            first.extend(self._waiting.pop(application, ()))
        self._waiting = returned | self._waiting
        self._length += len(items)

    def remove(self, unwanted: Callable[[T], bool]) -> list[T]:
        """Remove these items and return them."""
        removed: list[T] = []
        for application, items in list(self._waiting.items()):
            left = deque(item for item in items if not unwanted(item))
            removed += [item for item in items if unwanted(item)]
            if left:
                self._waiting[application] = left
            else:
                del self._waiting[application]
        self._length -= len(removed)
        return removed
