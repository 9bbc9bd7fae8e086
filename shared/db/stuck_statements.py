"""Ends waits for a server that no longer answers but still holds the connection, such as a frozen one.

PostgreSQL's own statement_timeout cannot: it is the server that would have to notice.
"""

import os
import socket
from contextlib import suppress
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

from psycopg import Connection

_LOOK_EVERY_S = 0.5


class StuckStatements:
    """Cuts the connection of a statement that runs longer than `limit_s`; its caller sees a lost connection."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._running: dict[Connection[Any], float] = {}
        # Held while cutting, so that a connection is not closed, and its number given to another, meanwhile.
        self._lock = Lock()
        self._stop = Event()
        self._watcher: Thread | None = None

    def begin(self, connection: Connection[Any]) -> None:
        if self._watcher is None:
            self._start()
        with self._lock:
            self._running[connection] = monotonic()

    def end(self, connection: Connection[Any]) -> None:
        with self._lock:
            del self._running[connection]

    def close(self) -> None:
        self._stop.set()

    def _start(self) -> None:
        with self._lock:
            if self._watcher is None:
                self._watcher = Thread(target=self._watch, name="stuck-statements", daemon=True)
                self._watcher.start()

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_EVERY_S):
            with self._lock:
                latest_start = monotonic() - self._limit_s
                for connection, started in self._running.items():
                    if started < latest_start and not connection.closed:
                        _cut(connection)


def _cut(connection: Connection[Any]) -> None:
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
