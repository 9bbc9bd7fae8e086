"""Ends waits for a server that no longer answers but still holds the connection, such as a frozen one.

PostgreSQL's own statement_timeout cannot: it is the server that would have to notice.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from time import monotonic

from shared.platform.database.sessions import Session

_LOOK_EVERY_S = 0.5


class StuckStatements:
    """Cuts the connection of a session that is busy for longer than it said; its user sees a lost connection."""

    def __init__(self) -> None:
        self._busy_until: dict[Session, float] = {}
        # Held while cutting, so that no session is given back, and used by another, meanwhile.
        self._lock = Lock()
        self._stop = Event()
        self._watcher: Thread | None = None

    def begin(self, session: Session, limit_s: float) -> None:
        if self._watcher is None:
            self._start()
        with self._lock:
            self._busy_until[session] = monotonic() + limit_s

    def end(self, session: Session) -> None:
        with self._lock:
            del self._busy_until[session]

    @contextmanager
    def watching(self, session: Session, limit_s: float) -> Iterator[None]:
        self.begin(session, limit_s)
        try:
            yield
        finally:
            self.end(session)

    def close(self) -> None:
        """Whoever still waits for the server is cut off now: afterwards nobody would be."""
        self._stop.set()
        with self._lock:
            for session in self._busy_until:
                session.cut()

    def _start(self) -> None:
        with self._lock:
            if self._watcher is None:
                watcher = Thread(target=self._watch, name="stuck-statements", daemon=True)
                watcher.start()
                self._watcher = watcher

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_EVERY_S):
            with self._lock:
                now = monotonic()
                for session, until in self._busy_until.items():
                    if until < now:
                        session.cut()
