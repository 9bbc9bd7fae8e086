"""The connection pool of a process: bounded waits, and healed by itself after a database restart.

Create it after fork; a connection must never be shared by two processes.
"""

import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

from shared.settings import DatabaseSettings

_OUTAGES = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg.errors.TransactionTimeout,
)


class DatabaseUnavailableError(Exception):
    """PostgreSQL cannot be reached or gave up on us; the same call may work later."""


class Database:
    def __init__(self, settings: DatabaseSettings, service: str) -> None:
        self._pool = ConnectionPool(
            settings.url,
            kwargs=connection_arguments(settings, service),
            min_size=1,
            max_size=settings.pool_size,
            timeout=settings.pool_timeout_s,
            max_waiting=settings.pool_size * 50,
            max_lifetime=1800,
            reconnect_timeout=2,
            open=False,
        )
        self._pool.open()

    @contextmanager
    def transaction(self) -> Iterator[Connection[Any]]:
        """A transaction that commits at the end of the block, or rolls back when the block raises."""
        with translate_outage():
            connection = self._live_connection()
            try:
                with connection:
                    yield connection
            finally:
                self._pool.putconn(connection)

    def check(self) -> None:
        """Raises unless PostgreSQL answers."""
        with self.transaction() as connection:
            connection.execute("select 1")

    def close(self) -> None:
        self._pool.close()

    def _live_connection(self) -> Connection[Any]:
        """The pool's own check would wait a second after each dead connection, of which a restart leaves many."""
        while True:
            connection = self._pool.getconn()
            if not _closed_by_server(connection):
                return connection
            connection.close()
            self._pool.putconn(connection)


def connection_arguments(
    settings: DatabaseSettings, service: str, **server_settings: str | int
) -> dict[str, Any]:
    """What every connection of ours asks for; `server_settings` are PostgreSQL's own, by name."""
    options = {"timezone": "UTC", "statement_timeout": f"{settings.statement_timeout_s}s", **server_settings}
    given = str(conninfo_to_dict(settings.url).get("options") or "")
    return {
        "application_name": f"mizan-{service}",
        "connect_timeout": settings.connect_timeout_s,
        "options": " ".join([given, *(f"-c {name}={value}" for name, value in options.items())]),
        # A peer that vanished without a word is noticed within about 15 seconds.
        "keepalives_idle": 5,
        "keepalives_interval": 3,
        "keepalives_count": 3,
        "tcp_user_timeout": 15_000,
    }


@contextmanager
def translate_outage() -> Iterator[None]:
    """The one boundary where psycopg's ways of saying "not now" become ours."""
    try:
        yield
    except PoolTimeout as error:
        raise DatabaseUnavailableError("no database connection became free in time") from error
    except _OUTAGES as error:
        if _is_our_own_fault(error):
            raise
        raise DatabaseUnavailableError(str(error).strip() or type(error).__name__) from error


def _is_our_own_fault(error: psycopg.Error) -> bool:
    """Class 54, "program limit exceeded", is filed under operational errors; trying again would not help."""
    return (error.sqlstate or "").startswith("54")


def _closed_by_server(connection: Connection[Any]) -> bool:
    """Between uses a healthy connection is silent: something to read is PostgreSQL's goodbye.

    This costs a system call; asking the server on every use would cost a round trip.
    """
    poller = select.poll()
    poller.register(connection.fileno(), select.POLLIN)
    return bool(poller.poll(0))
