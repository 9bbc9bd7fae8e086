"""What every connection of ours asks for, and how psycopg's troubles are told to the rest of the house."""

import select
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
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

# A peer that vanished without a word is noticed within about 15 seconds, by either side.
_KEEPALIVE = {"keepalives_idle": 5, "keepalives_interval": 3, "keepalives_count": 3}
_VANISHED = {"tcp_user_timeout": 15_000}

# For sessions that run the same few statements on tables that grow under them: a plan made while a table was
# empty would read all of it until somebody analyzes it, or gather all that an index finds before taking a few, and
# planning each time costs as much as running.
STEADY_PLANS: Mapping[str, str] = MappingProxyType(
    {"enable_seqscan": "off", "enable_bitmapscan": "off", "plan_cache_mode": "force_generic_plan"}
)


class DatabaseUnavailableError(Exception):
    """PostgreSQL cannot be reached or gave up on us; the same call may work later."""


def connection_arguments(
    settings: DatabaseSettings, service: str, **server_settings: str | int
) -> dict[str, Any]:
    """`server_settings` are PostgreSQL's own, by name."""
    options = {
        "timezone": "UTC",
        "datestyle": "ISO",
        "statement_timeout": f"{settings.statement_timeout_s}s",
        # One that stalls in a transaction, or is gone without a word, gives back its locks.
        "idle_in_transaction_session_timeout": f"{IDLE_IN_TRANSACTION_S}s",
        **{f"tcp_{name}": value for name, value in _KEEPALIVE.items()},
        **_VANISHED,
        **server_settings,
    }
    given = str(conninfo_to_dict(settings.url).get("options") or "")
    return {
        "application_name": f"mizan-{service}",
        "client_encoding": "utf8",
        "connect_timeout": settings.connect_timeout_s,
        "options": " ".join([given, *(f"-c {name}={value}" for name, value in options.items())]),
        **_KEEPALIVE,
        **_VANISHED,
    }


@contextmanager
def translate_outage() -> Iterator[None]:
    """The one boundary where psycopg's ways of saying "not now" become ours."""
    try:
        yield
    except _OUTAGES as error:
        raise_outage(error)
        raise


def raise_outage(error: BaseException) -> None:
    """Raises DatabaseUnavailableError where that is what `error` means."""
    if isinstance(error, _OUTAGES) and not _is_our_own_fault(error):
        raise DatabaseUnavailableError(str(error).strip() or type(error).__name__) from error


def closed_by_server(connection: Connection[Any]) -> bool:
    """Between uses a healthy connection is silent: something to read is PostgreSQL's goodbye.

    This costs a system call; asking the server on every use would cost a round trip.
    """
    poller = select.poll()
    poller.register(connection.fileno(), select.POLLIN)
    return bool(poller.poll(0))


def _is_our_own_fault(error: psycopg.Error) -> bool:
    """Class 54, "program limit exceeded", is filed under operational errors; trying again would not help."""
    return (error.sqlstate or "").startswith("54")
