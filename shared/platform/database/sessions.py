"""The open connections of a process: taken, given back, replaced when they are dead or old.

Callers never wait for a server that is known to be away. Why it is not psycopg_pool:
docs/decisions/0007-connections.md.
"""

import os
import socket
from collections import deque
from contextlib import suppress
from threading import BoundedSemaphore, Lock
from time import monotonic
from typing import Any

import psycopg
from psycopg import Connection

from shared.platform.database.connections import (
    DatabaseUnavailableError,
    closed_by_server,
    connection_arguments,
)
from shared.platform.settings import DatabaseSettings

_MAX_AGE_S = 1800
_PAUSE_BETWEEN_TRIES_S = 0.1
_SURELY_ALIVE_S = 0.02
"""No server ends and comes back in so short a time."""


class Session:
    """A connection with a cursor that is used again: making one costs as much as a small statement."""

    __slots__ = ("_line", "_since", "connection", "cursor", "given_back")

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection
        # A number of our own for the socket: libpq may close its own at any time, and another file take it.
        self._line = socket.socket(fileno=os.dup(connection.fileno()))
        self.cursor = connection.cursor()
        self._since = self.given_back = monotonic()

    def cut(self) -> None:
        """Ends whatever waits for the server, in any thread; the session is of no use afterwards."""
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._line.close()
        self.connection.close()

    def is_reusable(self) -> bool:
        connection = self.connection
        return (
            not connection.closed
            and connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
            and self.given_back - self._since < _MAX_AGE_S
        )


class Sessions:
    """Nothing is connected before it is needed; the one used last is taken first."""

    def __init__(self, settings: DatabaseSettings, service: str, **server_settings: str) -> None:
        self._url = settings.url
        self._arguments = connection_arguments(settings, service, **server_settings)
        self._wait_s = settings.pool_timeout_s
        self._free = BoundedSemaphore(settings.pool_size)
        self._idle: deque[Session] = deque()
        self._closed = False
        self._away_since: float | None = None
        self._one_tries = Lock()

    def take(self) -> Session:
        if not self._free.acquire(timeout=self._wait_s):
            raise DatabaseUnavailableError("no database connection became free in time")
        try:
            return self._idle_session() or self._new_session()
        except BaseException:
            self._free.release()
            raise

    def give_back(self, session: Session) -> None:
        try:
            session.given_back = monotonic()
            if session.is_reusable() and not self._closed:
                self._idle.append(session)
            else:
                session.close()
        finally:
            self._free.release()

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _idle_session(self) -> Session | None:
        while self._idle:
            try:
                session = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            # Asking lets other threads run, which costs more than the question; so not while one is busy.
            if monotonic() - session.given_back < _SURELY_ALIVE_S or not closed_by_server(session.connection):
                return session
            session.close()
        return None

    def _new_session(self) -> Session:
        """While PostgreSQL is away one caller at a time asks for it again, and the others are told at once."""
        away_since = self._away_since
        if away_since is None:
            return self._connect()
        if self._one_tries.acquire(blocking=False):
            try:
                if monotonic() - away_since >= _PAUSE_BETWEEN_TRIES_S:
                    return self._connect()
            finally:
                self._one_tries.release()
        raise DatabaseUnavailableError("PostgreSQL is away")

    def _connect(self) -> Session:
        try:
            # psycopg prepares nothing by itself: at a rollback it would deallocate those of prepared.py too.
            connection = psycopg.connect(
                self._url, autocommit=True, prepare_threshold=None, **self._arguments
            )
        except psycopg.OperationalError:
            self._away_since = monotonic()
            raise
        self._away_since = None
        return Session(connection)
