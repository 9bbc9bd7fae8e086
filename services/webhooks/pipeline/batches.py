"""Batches of the pipeline: the queues in front of look-up and recording, and the threads that work on them."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from time import monotonic
from typing import Generic, Protocol, TypeVar

from services.webhooks.pipeline.fair_queue import FairQueue
from services.webhooks.pipeline.recording import Completed, RecordAction
from services.webhooks.pipeline.tries import TryInProgress
from shared.platform.backoff import backoff_delay
from shared.platform.batch_size import BatchSize
from shared.platform.kafka.handlers import is_transient

I = TypeVar("I")  # noqa: E741  an item of a batch
O = TypeVar("O")  # noqa: E741  the output of a batch

_MAX_RECORD_BYTES = 4 * 1024 * 1024
# Bigger batches cost less per try, and only the commit of offsets waits for them.
_RECORD_AFTER_S = 0.04

_log = logging.getLogger(__name__)


class BatchQueue(Protocol[I]):
    def next_batch(self, limit: int) -> list[I]:
        """Return the items of the next batch, or none if it is too early for one."""

    def requeue(self, items: Sequence[I]) -> None:
        """Put items back at the front, in their order."""


class BatchStage(Generic[I, O]):
    """Works on one batch at a time in another thread, so that the pipeline's own thread never waits.

    Transient errors are retried with the same batch, after a growing pause. After any other failure, also after a
    statement that took too long, batches are smaller, and only an item that fails alone is reported as failed.
    """

    def __init__(
        self,
        name: str,
        queue: BatchQueue[I],
        prepare: Callable[[list[I]], Callable[[], O]],
        *,
        batch: int,
        threads: Executor,
        wake: Callable[[], None],
    ) -> None:
        """`prepare` returns the work of a batch; the work may be called again after it raised.

        `wake` is called, from the working thread, when a batch ends.
        """
        self._name = name
        self._queue = queue
        self._prepare = prepare
        self._threads = threads
        self._wake = wake
        self._batch_size = BatchSize(batch)
        self.items: Sequence[I] = ()
        """The items of the batch in progress."""
        self._work: Callable[[], O] | None = None
        self._running: Future[O] | None = None
        self._failures = 0
        self._not_before = 0.0

    def start(self) -> None:
        """Start the next batch, or retry the current one, if nothing is running and the pause is over."""
        if self._running is not None or monotonic() < self._not_before:
            return
        if self._work is None:
            items = self._queue.next_batch(self._batch_size.current)
            if not items:
                return
            self.items = items
            self._work = self._prepare(items)
        self._running = self._threads.submit(self._work)
        self._running.add_done_callback(lambda _: self._wake())

    def collect(self) -> tuple[Sequence[I], O | Exception] | None:
        """Return the items and output of a finished batch, or None if there is none.

        An exception takes the place of the output only for an item that was processed alone.
        """
        if self._running is None or not self._running.done():
            return None
        finished, self._running = self._running, None
        error = finished.exception()
        if error is not None and is_transient(error):
            self._failures += 1
            pause = backoff_delay(self._failures)
            self._not_before = monotonic() + pause
            _log.warning("%s: %s; retrying in %.1f s", self._name, error, pause)
            return None
        items, self.items, self._work, self._failures = self.items, (), None, 0
        if error is None:
            self._batch_size.count_success()
            return items, finished.result()
        if len(items) == 1 and isinstance(error, Exception):
            return items, error
        self._batch_size.shrink(len(items))
        _log.warning(
            "%s: a batch of %d failed, continuing with batches of %d",
            self._name,
            len(items),
            self._batch_size.current,
            exc_info=error,
        )
        self._queue.requeue(items)
        return None


class LookupQueue(FairQueue[TryInProgress]):
    """Tries that wait for the look-up of their delivery, some of them until a pause is over."""

    def __init__(self) -> None:
        super().__init__(lambda one: one.application_id)
        self._postponed: deque[tuple[float, TryInProgress]] = deque()

    def add_later(self, delivery_try: TryInProgress, pause_s: float) -> None:
        """Add it after a pause, which is the same for all."""
        self._postponed.append((monotonic() + pause_s, delivery_try))

    @property
    def postponed(self) -> int:
        return len(self._postponed)

    def next_batch(self, limit: int) -> list[TryInProgress]:
        while self._postponed and self._postponed[0][0] <= monotonic():
            self.add(self._postponed.popleft()[1])
        return super().next_batch(limit)

    def remove(self, unwanted: Callable[[TryInProgress], bool]) -> list[TryInProgress]:
        removed = super().remove(unwanted) + [one for _, one in self._postponed if unwanted(one)]
        self._postponed = deque(pair for pair in self._postponed if not unwanted(pair[1]))
        return removed


class RecordQueue:
    """Tries that wait to be recorded, until there are enough of them or the oldest has waited long enough."""

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._waiting: deque[tuple[TryInProgress, RecordAction]] = deque()
        self._since = 0.0
        self._bytes = 0

    def add(self, delivery_try: TryInProgress, action: RecordAction) -> None:
        if not self._waiting:
            self._since = monotonic()
        self._waiting.append((delivery_try, action))
        self._bytes += _body_size(action)

    def next_batch(self, limit: int) -> list[tuple[TryInProgress, RecordAction]]:
        """Return at most one try of each delivery. A second one waits for the next batch."""
        if not self._is_ready():
            return []
        batch: dict[str, tuple[TryInProgress, RecordAction]] = {}
        postponed: list[tuple[TryInProgress, RecordAction]] = []
        size = 0
        while self._waiting and len(batch) < limit and size < _MAX_RECORD_BYTES:
            delivery_try, action = self._waiting.popleft()
            if delivery_try.delivery_id in batch:
                postponed.append((delivery_try, action))
            else:
                batch[delivery_try.delivery_id] = delivery_try, action
                size += _body_size(action)
        self._bytes -= size
        self._waiting.extendleft(reversed(postponed))
        self._since = monotonic()
        return list(batch.values())

    def requeue(self, items: Sequence[tuple[TryInProgress, RecordAction]]) -> None:
        self._waiting.extendleft(reversed(items))
        self._bytes += sum(_body_size(action) for _, action in items)
        self._since = 0.0

    def _is_ready(self) -> bool:
        if not self._waiting:
            return False
        return (
            len(self._waiting) >= self._enough
            or self._bytes >= _MAX_RECORD_BYTES
            or monotonic() - self._since >= _RECORD_AFTER_S
        )


def _body_size(action: RecordAction) -> int:
    return len(action.result.body) if isinstance(action, Completed) else 0
