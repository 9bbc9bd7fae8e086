"""Ends calls to a server that no longer responds but keeps the connection open, such as a frozen one.

PostgreSQL's statement_timeout cannot: it is the server that would have to apply it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from time import monotonic

from shared.platform.database.connections import PooledConnection

_CHECK_EVERY_S = 0.5


class StatementWatchdog:
    """Aborts connections that are busy for longer than their limit; their users see a lost connection.

    Its thread starts with the first call of begin().
    """

    def __init__(self) -> None:
        self._busy_until: dict[PooledConnection, float] = {}
        # Held while aborting, so that no connection is released and used by somebody else meanwhile.
        self._lock = Lock()
        self._stop = Event()
        self._thread: Thread | None = None

    def begin(self, pooled: PooledConnection, limit_s: float) -> None:
        if self._thread is None:
            self._start()
        with self._lock:
            self._busy_until[pooled] = monotonic() + limit_s

    def end(self, pooled: PooledConnection) -> None:
        with self._lock:
            del self._busy_until[pooled]

    @contextmanager
    def watching(self, pooled: PooledConnection, limit_s: float) -> Iterator[None]:
        self.begin(pooled, limit_s)
        try:
            yield
        finally:
            self.end(pooled)

    def close(self) -> None:
        """Stop the thread and abort all connections that are busy: from now on nobody would."""
        self._stop.set()
        with self._lock:
            for pooled in self._busy_until:
                pooled.abort()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                thread = Thread(target=self._watch, name="statement-watchdog", daemon=True)
                thread.start()
                self._thread = thread

    def _watch(self) -> None:
        while not self._stop.wait(_CHECK_EVERY_S):
            with self._lock:
                now = monotonic()
                for pooled, until in self._busy_until.items():
                    if until < now:
                        pooled.abort()
