"""A stage of a lane: work on one batch at a time, in a thread, while the lane's own thread goes on.

Trouble that passes is waited out, with the same batch. A batch that fails otherwise is taken apart: its items go one
by one, and only what fails alone comes back as failed.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from time import monotonic
from typing import Generic, Protocol, TypeVar

from shared.platform.backoff import growing_pause
from shared.platform.kafka.consumer_loop import TRANSIENT

I = TypeVar("I")  # noqa: E741  an item
O = TypeVar("O")  # noqa: E741  what comes of a batch

_log = logging.getLogger(__name__)


class Queue(Protocol[I]):
    def next_batch(self, limit: int) -> list[I]:
        """Empty when it is not yet time for one."""

    def put_back(self, items: Sequence[I]) -> None: ...


class Stage(Generic[I, O]):
    def __init__(
        self,
        name: str,
        queue: Queue[I],
        prepare: Callable[[list[I]], Callable[[], O]],
        *,
        batch: int,
        threads: Executor,
        wake: Callable[[], None],
    ) -> None:
        """`prepare` makes the work of a batch, which can be called again when it raised; `wake` hears when it ends."""
        self._name = name
        self._queue = queue
        self._prepare = prepare
        self._threads = threads
        self._wake = wake
        self._most = batch
        self.items: Sequence[I] = ()
        """What is being worked on."""
        self._work: Callable[[], O] | None = None
        self._running: Future[O] | None = None
        self._singly = 0
        self._failures = 0
        self._not_before = 0.0

    def start(self) -> None:
        """Begins a batch, or begins it again, when it is time."""
        if self._running is not None or monotonic() < self._not_before:
            return
        if self._work is None:
            items = self._queue.next_batch(1 if self._singly else self._most)
            if not items:
                return
            self._singly = max(0, self._singly - 1)
            self.items = items
            self._work = self._prepare(items)
        self._running = self._threads.submit(self._work)
        self._running.add_done_callback(lambda _: self._wake())

    def collect(self) -> tuple[Sequence[I], O | Exception] | None:
        """A batch that is finished, with what came of it: an error only for an item alone."""
        if self._running is None or not self._running.done():
            return None
        finished, self._running = self._running, None
        error = finished.exception()
        if isinstance(error, TRANSIENT):
            self._failures += 1
            pause = growing_pause(self._failures)
            self._not_before = monotonic() + pause
            _log.warning("%s: %s; trying again in %.1f s", self._name, error, pause)
            return None
        items, self.items, self._work, self._failures = self.items, (), None, 0
        if error is None:
            return items, finished.result()
        if len(items) == 1 and isinstance(error, Exception):
            return items, error
        _log.warning("%s: a batch failed, its items go one by one", self._name, exc_info=error)
        self._singly = len(items)
        self._queue.put_back(items)
        return None
