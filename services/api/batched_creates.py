"""Creates intents, those of concurrent requests in one statement and transaction.

One statement for several intents takes PostgreSQL half as long for each as a statement of its own. A request runs
its statement at once and alone if no other create of this process is running. Otherwise it is queued, and when the
statement that runs ends, one of the threads that wait runs one statement for all that is queued.
docs/decisions/0006-api-speed.md has the figures.
"""

import logging
from collections import deque
from threading import Lock

from shared.domain.intents import store
from shared.domain.intents.intent import Intent, NewIntent
from shared.platform.database.pool import Database, DatabaseUnavailableError, StatementTimeoutError

_MAX_WAIT_S = 0.004
"""After this a queued request no longer waits for the statement that runs: the disk may be slow, or a row locked."""
_MAX_BATCH = 50
_log = logging.getLogger(__name__)


class _Queued:
    """An intent that waits to be created, and then its result."""

    __slots__ = ("batch", "intent", "new", "outage", "woken")

    def __init__(self, new: NewIntent) -> None:
        self.new = new
        self.batch: list[_Queued] | None = None
        """Set for the one whose thread is to create the batch."""
        self.intent: Intent | None = None
        self.outage: DatabaseUnavailableError | None = None
        self.woken = Lock()  # the cheapest way to let one thread wait for another
        self.woken.acquire()


class BatchedCreates:
    def __init__(self, database: Database, max_wait_s: float = _MAX_WAIT_S) -> None:
        self._database = database
        self._max_wait_s = max_wait_s
        self._lock = Lock()
        self._running = 0
        """How many statements run: one, or more if they are slow."""
        self._queue: deque[_Queued] = deque()

    @property
    def queued(self) -> int:
        """How many intents wait for a statement to end."""
        return len(self._queue)

    def create_or_find(self, new: NewIntent) -> tuple[Intent, bool]:
        """Do the same as `store.create_or_find()`, in a transaction of its own or together with others.

        Raises what that raises. An outage is raised for each intent of a batch. After a timeout or any other error of a
        batch, each intent is tried again alone, and so is one that was not created, for example because it is a repeat.
        """
        with self._lock:
            if not self._running:
                self._running += 1
                queued = None
            else:
                queued = _Queued(new)
                self._queue.append(queued)
        if queued is None:
            try:
                return self._create_alone(new)
            finally:
                self._end_statement()
        batch = self._wait(queued)
        if batch is not None:
            self._create_batch(batch)
        if queued.outage is not None:
            raise type(queued.outage)(str(queued.outage)) from queued.outage
        if queued.intent is not None:
            return queued.intent, True
        return self._create_alone(new)

    def _create_alone(self, new: NewIntent) -> tuple[Intent, bool]:
        with self._database.cursor() as cursor:
            return store.create_or_find(cursor, new)

    def _wait(self, queued: _Queued) -> "list[_Queued] | None":
        """Return the batch that this thread is to create, or None if another thread has created it."""
        if not queued.woken.acquire(timeout=self._max_wait_s):
            with self._lock:
                if queued in self._queue:
                    self._queue.remove(queued)
                    self._running += 1
                    return [queued, *self._take(_MAX_BATCH - 1)]
            queued.woken.acquire()  # its batch has been taken meanwhile
        return queued.batch

    def _create_batch(self, batch: list[_Queued]) -> None:
        """Set the results of a batch, and wake its threads, whatever happens."""
        try:
            try:
                with self._database.cursor() as cursor:
                    intents = store.create_batch(cursor, [queued.new for queued in batch])
            finally:
                self._end_statement()
            for queued, intent in zip(batch, intents, strict=True):
                queued.intent = intent
        except StatementTimeoutError:
            _log.warning("%d intents are created one by one: their statement took too long", len(batch))
        except DatabaseUnavailableError as outage:
            for queued in batch:
                queued.outage = outage
        except Exception:  # noqa: BLE001  each thread meets it again, if it is that of its own intent
            _log.warning("%d intents are created one by one: not possible at once", len(batch), exc_info=True)
        finally:
            for queued in batch:
                queued.woken.release()

    def _end_statement(self) -> None:
        """Let one of the queued threads create all that is queued."""
        with self._lock:
            self._running -= 1
            if not self._running and self._queue:
                self._running += 1
                batch = self._take(_MAX_BATCH)
                batch[0].batch = batch
                batch[0].woken.release()

    def _take(self, most: int) -> list[_Queued]:
        return [self._queue.popleft() for _ in range(min(most, len(self._queue)))]
