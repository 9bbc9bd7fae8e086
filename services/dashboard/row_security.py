"""Whose rows the dashboard sees: row-level security of PostgreSQL, by two settings of each transaction.

PostgreSQL shows the dashboard's role only rows of the merchant in `mizan.merchant_id` and of the account in
`mizan.email`, and none if they are not set (revision 0025 of the schema). A request learns both from the session or the
invitation link that it comes with; a sign-in begins with the email address alone. The settings end with the
transaction, so the next request that uses the connection starts with nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from flask import g, has_app_context
from psycopg import Connection, Cursor
from psycopg.pq import Escaping

from shared.platform.database.pool import Database
from shared.platform.database.prepared_statements import run_directly
from shared.platform.tokens import hash_token

_SET = b"set local mizan.merchant_id = %b; set local mizan.email = %b"
_OF_INVITATION = "select merchant_id, email from invitation_scope(%s)"


@dataclass(frozen=True, slots=True)
class RowScope:
    merchant_id: UUID | None = None
    email: str | None = None
    """Of the account, as it is stored. Its memberships and sessions are seen, whatever the merchant is."""


NOTHING = RowScope()


def request_scope() -> RowScope:
    """Return whose rows this request sees. Outside of a request it is nothing."""
    scope: RowScope = g.get("row_scope", NOTHING) if has_app_context() else NOTHING
    return scope


def limit_request(scope: RowScope, connection: Connection[Any] | None = None) -> None:
    """Let this request see only these rows from now on, also in the transaction of `connection`."""
    g.row_scope = scope
    if connection is not None:
        _apply(connection, scope)


def limit_to_invitation(connection: Connection[Any], token: str) -> None:
    """Let this request see the rows of the open invitation with this token, and nothing if there is none."""
    row = connection.execute(_OF_INVITATION, (hash_token(token),)).fetchone()
    limit_request(NOTHING if row is None else RowScope(*row), connection)


@contextmanager
def as_merchant(connection: Connection[Any], merchant_id: UUID) -> Iterator[None]:
    """See and write another merchant's rows inside the block, in this transaction only.

    For what a person's change means for other merchants that they belong to.
    """
    before = request_scope()
    _apply(connection, RowScope(merchant_id, before.email))
    yield  # after an error the transaction is rolled back, and the settings with it
    _apply(connection, before)


class ScopedDatabase(Database):
    """A database whose transactions, and single statements, all begin with a scope."""

    def __init__(self, database: Database, scope: Callable[[], RowScope] = request_scope) -> None:
        self._database = database
        self._scope = scope

    @contextmanager
    def transaction(self) -> Iterator[Connection[Any]]:
        """Open a transaction, as Database does, that begins with the scope, in one round trip."""
        with self._database.connection() as connection:
            run_directly(connection, b"begin; " + _settings(connection, self._scope()))
            try:
                yield connection
            except BaseException:
                with suppress(psycopg.Error):  # it is lost, or was aborted: it is not used again
                    connection.rollback()
                raise
            run_directly(connection, b"commit")

    @contextmanager
    def cursor(self) -> Iterator[Cursor[Any]]:
        """Open a cursor in a transaction of its own: the scope must end with it."""
        with self.transaction() as connection, connection.cursor() as cursor:
            yield cursor

    def unscoped_cursor(self) -> AbstractContextManager[Cursor[Any]]:
        """Open a cursor without a scope, for a function with the owner's rights. It sees nothing of any merchant."""
        return self._database.cursor()

    def check(self) -> None:
        self._database.check()

    def close(self) -> None:
        self._database.close()

    def kept(self) -> "ScopedDatabase":
        """Return this database with the scope of now, for work that goes on after the request."""
        scope = self._scope()
        return ScopedDatabase(self._database, lambda: scope)

    def of_merchant(self, merchant_id: UUID) -> "ScopedDatabase":
        """Return this database for another merchant's rows, as `as_merchant` does."""
        return ScopedDatabase(self._database, lambda: RowScope(merchant_id))


def _apply(connection: Connection[Any], scope: RowScope) -> None:
    run_directly(connection, _settings(connection, scope))


def _settings(connection: Connection[Any], scope: RowScope) -> bytes:
    """Return statements that set the scope. They take no parameters, so the values are quoted by libpq."""
    escape = Escaping(connection.pgconn).escape_literal
    return _SET % (escape(str(scope.merchant_id or "").encode()), escape((scope.email or "").encode()))
