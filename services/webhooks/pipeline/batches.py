"""What waits for the two stages of a lane."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from time import monotonic
from typing import Generic, Protocol, TypeVar

from services.webhooks.pipeline.recording import Completed, RecordAction
from services.webhooks.pipeline.tries import TryInProgress
from shared.platform.backoff import growing_pause
from shared.platform.kafka.consumer_loop import TRANSIENT

_RECORD_BYTES = 4 * 1024 * 1024
# Recording more at once costs less; nobody waits for it but the offsets.
_RECORD_AFTER_S = 0.04


class LookupQueue:
    """In the order in which they came."""

    def __init__(self) -> None:
        self._waiting: deque[TryInProgress] = deque()

    def add(self, one: TryInProgress) -> None:
        self._waiting.append(one)

    def next_batch(self, limit: int) -> list[TryInProgress]:
        return [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]

    def put_back(self, items: Sequence[TryInProgress]) -> None:
        self._waiting.extendleft(reversed(items))

    def leave(self, unwanted: Callable[[TryInProgress], bool]) -> list[TryInProgress]:
        gone = [one for one in self._waiting if unwanted(one)]
        self._waiting = deque(one for one in self._waiting if not unwanted(one))
        return gone


class RecordQueue:
    """Until there are many, or some have waited for a moment."""

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._waiting: deque[tuple[TryInProgress, RecordAction]] = deque()
        self._since = 0.0
        self._bytes = 0

    def add(self, one: TryInProgress, result: RecordAction) -> None:
        if not self._waiting:
            self._since = monotonic()
        self._waiting.append((one, result))
        self._bytes += _size(result)

    def next_batch(self, limit: int) -> list[tuple[TryInProgress, RecordAction]]:
        """Of each delivery at most one; a second one waits for the next batch."""
        if not self._is_time():
            return []
        batch: dict[str, tuple[TryInProgress, RecordAction]] = {}
        again: list[tuple[TryInProgress, RecordAction]] = []
        size = 0
        while self._waiting and len(batch) < limit and size < _RECORD_BYTES:
            one, result = self._waiting.popleft()
            if one.delivery_id in batch:
                again.append((one, result))
            else:
                batch[one.delivery_id] = one, result
                size += _size(result)
        self._bytes -= size
        self._waiting.extendleft(reversed(again))
        self._since = monotonic()
        return list(batch.values())

    def put_back(self, items: Sequence[tuple[TryInProgress, RecordAction]]) -> None:
        self._waiting.extendleft(reversed(items))
        self._bytes += sum(_size(result) for _, result in items)
        self._since = 0.0

    def _is_time(self) -> bool:
        if not self._waiting:
            return False
        return (
            len(self._waiting) >= self._enough
            or self._bytes >= _RECORD_BYTES
            or monotonic() - self._since >= _RECORD_AFTER_S
        )


def _size(result: RecordAction) -> int:
    return len(result.answer.body) if isinstance(result, Completed) else 0


I = TypeVar("I")  # noqa: E741  an item
O = TypeVar("O")  # noqa: E741  what comes of a batch

_log = logging.getLogger(__name__)


class BatchQueue(Protocol[I]):
    def next_batch(self, limit: int) -> list[I]:
        """Empty when it is not yet time for one."""

    def put_back(self, items: Sequence[I]) -> None: ...


class BatchStage(Generic[I, O]):
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
