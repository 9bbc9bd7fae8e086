"""Creates and retrieves intents, those of concurrent requests in one statement and transaction.

One statement for several intents takes PostgreSQL half as long for each as a statement of its own. A request runs
its statement at once and alone if no other of its kind is running in this process. Otherwise it is queued, and when the
statement that runs ends, one of the threads that wait runs one statement for all that is queued.
docs/decisions/0006-api-speed.md has the figures.
"""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import Any, Generic, TypeVar
from uuid import UUID

from psycopg import Cursor

from shared.domain.intents import store
from shared.domain.intents.intent import Intent, NewIntent
from shared.platform.database.pool import Database, DatabaseUnavailableError, StatementTimeoutError

_MAX_WAIT_S = 0.004
"""After this a queued request no longer waits for the statement that runs: the disk may be slow, or a row locked."""
_MAX_BATCH = 50
_log = logging.getLogger(__name__)

Wanted = TypeVar("Wanted")
Result = TypeVar("Result")


class _Queued(Generic[Wanted, Result]):
    """What a request wants, while it waits, and then its result."""

    __slots__ = ("batch", "outage", "result", "wanted", "woken")

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.batch: list[_Queued[Wanted, Result]] | None = None
        """Set for the one whose thread is to run the batch."""
        self.result: Result | None = None
        self.outage: DatabaseUnavailableError | None = None
        self.woken = Lock()  # the cheapest way to let one thread wait for another
        self.woken.acquire()


class BatchedStatement(ABC, Generic[Wanted, Result]):
    def __init__(self, database: Database, max_wait_s: float = _MAX_WAIT_S) -> None:
        self._database = database
        self._max_wait_s = max_wait_s
        self._lock = Lock()
        self._running = 0
        """How many statements run: one, or more if they are slow."""
        self._queue: deque[_Queued[Wanted, Result]] = deque()

    @abstractmethod
    def _run_one(self, cursor: Cursor[Any], wanted: Wanted) -> Result: ...

    @abstractmethod
    def _run_batch(self, cursor: Cursor[Any], batch: Sequence[Wanted]) -> Sequence[Result | None]:
        """Return a result for each, or None for those that have to run alone. Change nothing if it raises an error."""

    @property
    def queued(self) -> int:
        """How many requests wait for a statement to end."""
        return len(self._queue)

    def run(self, wanted: Wanted) -> Result:
        """Do the same as `_run_one()`, in a transaction of its own or together with others.

        Raises what that raises. An outage is raised for each request of a batch. After a timeout or any other error of
        a batch, each is run again alone.
        """
        with self._lock:
            if not self._running:
                self._running += 1
                queued = None
            else:
                queued = _Queued[Wanted, Result](wanted)
                self._queue.append(queued)
        if queued is None:
            try:
                return self._run_alone(wanted)
            finally:
                self._end_statement()
        batch = self._wait(queued)
        if batch is not None:
            self._run_for_all(batch)
        if queued.outage is not None:
            raise type(queued.outage)(str(queued.outage)) from queued.outage
        if queued.result is not None:
            return queued.result
        return self._run_alone(wanted)

    def _run_alone(self, wanted: Wanted) -> Result:
        with self._database.cursor() as cursor:
            return self._run_one(cursor, wanted)

    def _wait(self, queued: _Queued[Wanted, Result]) -> list[_Queued[Wanted, Result]] | None:
        """Return the batch that this thread is to run, or None if another thread has run it."""
        if not queued.woken.acquire(timeout=self._max_wait_s):
            with self._lock:
                if queued in self._queue:
                    self._queue.remove(queued)
                    self._running += 1
                    return [queued, *self._take(_MAX_BATCH - 1)]
            queued.woken.acquire()  # its batch has been taken meanwhile
        return queued.batch

    def _run_for_all(self, batch: list[_Queued[Wanted, Result]]) -> None:
        """Set the results of a batch, and wake its threads, whatever happens."""
        try:
            try:
                with self._database.cursor() as cursor:
                    results = self._run_batch(cursor, [queued.wanted for queued in batch])
            finally:
                self._end_statement()
            for queued, result in zip(batch, results, strict=True):
                queued.result = result
        except StatementTimeoutError:
            _log.warning("%d requests run one by one: their statement took too long", len(batch))
        except DatabaseUnavailableError as outage:
            for queued in batch:
                queued.outage = outage
        except Exception:  # noqa: BLE001  each thread meets it again, if it is that of its own request
            _log.warning("%d requests run one by one: not possible at once", len(batch), exc_info=True)
        finally:
            for queued in batch:
                queued.woken.release()

    def _end_statement(self) -> None:
        """Let one of the queued threads run all that is queued."""
        with self._lock:
            self._running -= 1
            if not self._running and self._queue:
                self._running += 1
                batch = self._take(_MAX_BATCH)
                batch[0].batch = batch
                batch[0].woken.release()

    def _take(self, most: int) -> list[_Queued[Wanted, Result]]:
        return [self._queue.popleft() for _ in range(min(most, len(self._queue)))]


class BatchedCreates(BatchedStatement[NewIntent, tuple[Intent, bool]]):
    """See `store.create_or_find()`. What a batch did not create, such as a repeat, is run alone."""

    def _run_one(self, cursor: Cursor[Any], wanted: NewIntent) -> tuple[Intent, bool]:
        return store.create_or_find(cursor, wanted)

    def _run_batch(
        self, cursor: Cursor[Any], batch: Sequence[NewIntent]
    ) -> Sequence[tuple[Intent, bool] | None]:
        created = store.create_batch(cursor, batch)
        return [None if intent is None else (intent, True) for intent in created]


class BatchedRetrievals(BatchedStatement[UUID, Intent | None]):
    """See `store.find_intent()`."""

    def _run_one(self, cursor: Cursor[Any], wanted: UUID) -> Intent | None:
        return store.find_intent(cursor, wanted)

    def _run_batch(self, cursor: Cursor[Any], batch: Sequence[UUID]) -> Sequence[Intent | None]:
        return store.find_batch(cursor, batch)
