"""A pool of connections to PostgreSQL, used for transactions or for single statements.

Create a Database after fork: two processes must never share a connection. Why this is not psycopg_pool:
docs/decisions/0007-connections.md.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import BoundedSemaphore, Lock
from time import monotonic
from types import TracebackType
from typing import Any

import psycopg
from psycopg import Connection, Cursor
from psycopg.abc import Params, QueryNoTemplate
from psycopg.errors import ReadOnlySqlTransaction
from psycopg.rows import scalar_row

from shared.platform.database.connections import (
    DatabaseUnavailableError,
    PooledConnection,
    StatementTimeoutError,
    connection_arguments,
    raise_outage,
    translate_outage,
)
from shared.platform.database.statement_watchdog import StatementWatchdog
from shared.platform.settings import DatabaseSettings

__all__ = ["Database", "DatabaseUnavailableError", "StatementTimeoutError", "fetch_scalar"]

_RECONNECT_PAUSE_S = 0.1
_ALIVE_FOR_S = 0.02
"""A connection that was used so recently is not checked: no server stops and comes back in so short a time."""
_GRACE_S = 1
"""How long PostgreSQL gets to apply its own statement_timeout."""


class Database:
    """Connections of one process. Every method raises DatabaseUnavailableError if PostgreSQL cannot be used now."""

    def __init__(self, settings: DatabaseSettings, service: str, **server_settings: str) -> None:
        """`server_settings` are PostgreSQL's own settings, by name."""
        self._pool = _ConnectionPool(settings, service, **server_settings)
        self._watchdog = StatementWatchdog()
        self._statement_limit_s = settings.statement_timeout_s + _GRACE_S
        self._transaction_limit_s = 2 * settings.statement_timeout_s + _GRACE_S

    @contextmanager
    def transaction(self) -> Iterator[Connection[Any]]:
        """Open a transaction that commits at the end of the block, or rolls back if the block raises."""
        with self.connection() as connection, connection.transaction():
            yield connection

    @contextmanager
    def connection(self) -> Iterator[Connection[Any]]:
        """Use a connection for a transaction that the caller begins and ends. One that is left open is closed."""
        with translate_outage():
            pooled = self._pool.acquire()
            try:
                with self._watchdog.watching(pooled, self._transaction_limit_s):
                    yield pooled.connection
            except ReadOnlySqlTransaction:
                pooled.server_is_useless = True  # it is a standby now; new connections find the primary
                raise
            finally:
                self._pool.release(pooled)

    def cursor(self) -> AbstractContextManager[Cursor[Any]]:
        """Open a cursor on which each statement is a transaction of its own: one round trip instead of three."""
        return _AutocommitCursor(self._pool, self._watchdog, self._statement_limit_s)

    def check(self) -> None:
        """Raise DatabaseUnavailableError unless PostgreSQL responds and accepts writes."""
        with self.cursor() as cursor:
            row = cursor.execute("show transaction_read_only").fetchone()
        if row != ("off",):
            raise DatabaseUnavailableError("PostgreSQL is a standby and accepts no writes")

    def close(self) -> None:
        self._watchdog.close()
        self._pool.close()


def fetch_scalar(
    source: Connection[Any] | Cursor[Any], query: QueryNoTemplate, values: Params | None = None
) -> Any:
    """Run a statement that always returns one row, and return the first value of that row."""
    connection = source if isinstance(source, Connection) else source.connection
    with connection.cursor(row_factory=scalar_row) as cursor:
        value = cursor.execute(query, values).fetchone()
        assert cursor.rowcount == 1
        return value


class _AutocommitCursor:
    """A class, because three nested generators would take a tenth of the time of an API request."""

    __slots__ = ("_limit_s", "_pool", "_pooled", "_watchdog")

    def __init__(self, pool: "_ConnectionPool", watchdog: StatementWatchdog, limit_s: float) -> None:
        self._pool = pool
        self._watchdog = watchdog
        self._limit_s = limit_s
        self._pooled: PooledConnection

    def __enter__(self) -> Cursor[Any]:
        with translate_outage():
            self._pooled = self._pool.acquire()
        try:
            self._watchdog.begin(self._pooled, self._limit_s)
        except BaseException:
            self._pool.release(self._pooled)
            raise
        return self._pooled.cursor

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watchdog.end(self._pooled)
        if isinstance(error, ReadOnlySqlTransaction):
            self._pooled.server_is_useless = True  # it is a standby now; new connections find the primary
        self._pool.release(self._pooled)
        if error is not None:
            raise_outage(error)


class _ConnectionPool:
    """Connects when a connection is first needed; the one released last is acquired first.

    Callers never wait for a server that is known to be away.
    """

    def __init__(self, settings: DatabaseSettings, service: str, **server_settings: str) -> None:
        self._url = settings.url
        self._arguments = connection_arguments(settings, service, **server_settings)
        self._prepare_after = settings.prepare_after
        self._timeout_s = settings.pool_timeout_s
        self._free = BoundedSemaphore(settings.pool_size)
        self._idle: deque[PooledConnection] = deque()
        self._closed = False
        self._away_since: float | None = None
        self._reconnecting = Lock()

    def acquire(self) -> PooledConnection:
        if not self._free.acquire(timeout=self._timeout_s):
            raise DatabaseUnavailableError("no database connection became free in time")
        try:
            return self._idle_connection() or self._new_connection()
        except BaseException:
            self._free.release()
            raise

    def release(self, pooled: PooledConnection) -> None:
        try:
            pooled.released_at = monotonic()
            if pooled.is_reusable() and not self._closed:
                self._idle.append(pooled)
                return
            pooled.close()
            if pooled.server_is_useless:
                # Each would cost its next user as much time as this one did, or an error.
                self._close_idle()
        finally:
            self._free.release()

    def close(self) -> None:
        self._closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        with suppress(IndexError):  # another thread took the last one
            while self._idle:
                self._idle.pop().close()

    def _idle_connection(self) -> PooledConnection | None:
        while self._idle:
            try:
                pooled = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            # The check is a system call, which lets other threads run and so costs more than itself.
            if monotonic() - pooled.released_at < _ALIVE_FOR_S or not pooled.is_closed_by_server():
                return pooled
            pooled.close()
        return None

    def _new_connection(self) -> PooledConnection:
        """While PostgreSQL is away, one caller at a time tries to connect, and the others fail at once."""
        away_since = self._away_since
        if away_since is None:
            return self._connect()
        if self._reconnecting.acquire(blocking=False):
            try:
                if monotonic() - away_since >= _RECONNECT_PAUSE_S:
                    return self._connect()
            finally:
                self._reconnecting.release()
        raise DatabaseUnavailableError("PostgreSQL is not available")

    def _connect(self) -> PooledConnection:
        try:
            # If psycopg prepares statements, it deallocates all at a rollback, also those of prepared_statements.py.
            connection = psycopg.connect(
                self._url, autocommit=True, prepare_threshold=self._prepare_after, **self._arguments
            )
        except psycopg.OperationalError:
            self._away_since = monotonic()
            raise
        self._away_since = None
        return PooledConnection(connection)
