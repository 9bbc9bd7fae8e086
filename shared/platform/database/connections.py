"""One connection to PostgreSQL: its settings, its state, and the translation of psycopg's errors."""

import os
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict

from shared.platform.settings import DatabaseSettings

_OUTAGES = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg.errors.TransactionTimeout,
    psycopg.errors.ReadOnlySqlTransaction,
)

IDLE_IN_TRANSACTION_S = 15

# Either side notices within about 15 seconds that the other has vanished without closing the connection.
_KEEPALIVE = {"keepalives_idle": 5, "keepalives_interval": 3, "keepalives_count": 3}
_UNACKNOWLEDGED = {"tcp_user_timeout": 15_000}

_MAX_AGE_S = 1800
"""Then a connection is replaced: the server gives back its memory, and a failover is followed."""


class DatabaseUnavailableError(Exception):
    """PostgreSQL cannot be reached, or ended the call; the same call may work later."""


class StatementTimeoutError(DatabaseUnavailableError):
    """A statement took too long. If it was that of a batch, a smaller batch may work."""


def connection_arguments(
    settings: DatabaseSettings, service: str, **server_settings: str | int
) -> dict[str, Any]:
    """Return arguments for psycopg.connect(). `server_settings` are PostgreSQL's own settings, by name."""
    options = {
        "timezone": "UTC",
        "datestyle": "ISO",
        "statement_timeout": f"{settings.statement_timeout_s}s",
        # A client that stalls in a transaction, or vanishes, must not hold its locks for ever.
        "idle_in_transaction_session_timeout": f"{IDLE_IN_TRANSACTION_S}s",
        **{f"tcp_{name}": value for name, value in _KEEPALIVE.items()},
        **_UNACKNOWLEDGED,
        **server_settings,
    }
    given = str(conninfo_to_dict(settings.url).get("options") or "")
    return {
        "application_name": f"mizan-{service}",
        "client_encoding": "utf8",
        "connect_timeout": settings.connect_timeout_s,
        "options": " ".join([given, *(f"-c {name}={value}" for name, value in options.items())]),
        **_KEEPALIVE,
        **_UNACKNOWLEDGED,
    }


class PooledConnection:
    """A connection with one cursor that is reused: creating a cursor costs as much as a small statement."""

    __slots__ = ("_created_at", "_socket", "connection", "cursor", "released_at", "server_is_useless")

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection
        # A duplicate: libpq may close its own descriptor at any time, and another file may get the number.
        self._socket = socket.socket(fileno=os.dup(connection.fileno()))
        self.cursor = connection.cursor()
        self._created_at = self.released_at = monotonic()
        self.server_is_useless = False
        """The server does not respond, or has become a standby: other connections to it are of no use either."""

    def abort(self) -> None:
        """Shut the socket down. A thread that waits for the server gets an error; the connection is useless then."""
        self.server_is_useless = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()
        self.connection.close()

    def is_reusable(self) -> bool:
        connection = self.connection
        return (
            not connection.closed
            and not self.server_is_useless
            and connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
            and self.released_at - self._created_at < _MAX_AGE_S
        )

    def is_closed_by_server(self) -> bool:
        """Tell whether the server has sent something to an idle connection: it only does so when it closes it.

        This costs a system call; a query would cost a round trip.
        """
        poller = select.poll()
        poller.register(self.connection.fileno(), select.POLLIN)
        return bool(poller.poll(0))


@contextmanager
def translate_outage() -> Iterator[None]:
    """Turn psycopg's errors that mean "try later" into DatabaseUnavailableError. This is the only place that does."""
    try:
        yield
    except psycopg.Error as error:
        raise_outage(error)
        raise


def raise_outage(error: BaseException) -> None:
    """Raise DatabaseUnavailableError if that is what `error` means."""
    if _ends_session(error) or (isinstance(error, _OUTAGES) and not _is_program_limit(error)):
        timed_out = isinstance(error, psycopg.errors.QueryCanceled)
        kind = StatementTimeoutError if timed_out else DatabaseUnavailableError
        raise kind(str(error).strip() or type(error).__name__) from error


def _ends_session(error: BaseException) -> bool:
    """FATAL and PANIC end the session, and PANIC all of them, whatever the error's class is."""
    return isinstance(error, psycopg.Error) and error.diag.severity_nonlocalized in ("FATAL", "PANIC")


def _is_program_limit(error: psycopg.Error) -> bool:
    """Class 54, "program limit exceeded", is an OperationalError in psycopg; a retry would fail again."""
    return (error.sqlstate or "").startswith("54")
