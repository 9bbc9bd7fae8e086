"""PostgreSQL as the rooms of this house use it: in transactions, or in single statements.

Create it after fork; a connection must never be shared by two processes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from psycopg import Connection, Cursor
from psycopg.errors import ReadOnlySqlTransaction

from shared.platform.database.connections import DatabaseUnavailableError, raise_outage, translate_outage
from shared.platform.database.sessions import Session, Sessions
from shared.platform.database.stuck_statements import StuckStatements
from shared.platform.settings import DatabaseSettings

__all__ = ["Database", "DatabaseUnavailableError"]

_GRACE_S = 1


class Database:
    def __init__(self, settings: DatabaseSettings, service: str, **server_settings: str) -> None:
        """`server_settings` are PostgreSQL's own, by name."""
        self._sessions = Sessions(settings, service, **server_settings)
        self._stuck = StuckStatements()
        self._statement_limit_s = settings.statement_timeout_s + _GRACE_S
        # Of several statements; ours are short.
        self._transaction_limit_s = 2 * settings.statement_timeout_s + _GRACE_S

    @contextmanager
    def transaction(self) -> Iterator[Connection[Any]]:
        """A transaction that commits at the end of the block, or rolls back when the block raises."""
        with translate_outage():
            session = self._sessions.take()
            try:
                with (
                    self._stuck.watching(session, self._transaction_limit_s),
                    session.connection.transaction(),
                ):
                    yield session.connection
            except ReadOnlySqlTransaction:
                session.close()  # the server has become a standby; another connection finds the new primary
                raise
            finally:
                self._sessions.give_back(session)

    def cursor(self) -> "_SingleStatements":
        """For work of one statement: each is a transaction of its own, in one round trip."""
        return _SingleStatements(self._sessions, self._stuck, self._statement_limit_s)

    def check(self) -> None:
        """Raises unless PostgreSQL answers, and takes changes."""
        with self.cursor() as cursor:
            row = cursor.execute("show transaction_read_only").fetchone()
        if row != ("off",):
            raise DatabaseUnavailableError("PostgreSQL takes no changes: it is a standby")

    def close(self) -> None:
        self._stuck.close()
        self._sessions.close()


class _SingleStatements:
    """A class of its own, where three nested generators would cost a tenth of a request."""

    __slots__ = ("_limit_s", "_session", "_sessions", "_stuck")

    def __init__(self, sessions: Sessions, stuck: StuckStatements, limit_s: float) -> None:
        self._sessions = sessions
        self._stuck = stuck
        self._limit_s = limit_s
        self._session: Session

    def __enter__(self) -> Cursor[Any]:
        with translate_outage():
            self._session = self._sessions.take()
        try:
            self._stuck.begin(self._session, self._limit_s)
        except BaseException:
            self._sessions.give_back(self._session)
            raise
        return self._session.cursor

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stuck.end(self._session)
        if isinstance(error, ReadOnlySqlTransaction):
            self._session.close()  # the server has become a standby; another connection finds the new primary
        self._sessions.give_back(self._session)
        if error is not None:
            raise_outage(error)
