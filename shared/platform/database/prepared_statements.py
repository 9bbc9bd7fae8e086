"""Prepared statements of the hot path, run through libpq directly: psycopg's cursors would triple the cost here.
The same for statements such as `commit`.

Values go in and come out as PostgreSQL's text. docs/decisions/0006-api-speed.md has the figures.
"""

from collections.abc import Sequence
from itertools import count
from math import inf
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg import Connection, Cursor, errors
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGresult

Row = list[bytes | None]

_numbers = count(1)


class PreparedStatement:
    """One statement, with $1, $2 … for its values. Each connection prepares it at its first use.

    PostgreSQL keeps the plan of a prepared statement until somebody analyzes its tables, even if they were empty then.
    With `replan_after_s` the statement is prepared again after so many seconds.

    Its methods raise the errors that psycopg would raise.
    """

    def __init__(self, statement: str, replan_after_s: float = inf) -> None:
        self._statement = statement.encode()
        self._name = f"mizan_{next(_numbers)}".encode()
        self._replan_after_s = replan_after_s
        self._replan_at: WeakKeyDictionary[Connection[Any], float] = WeakKeyDictionary()

    def fetch_one(self, cursor: Cursor[Any], values: Sequence[bytes | None]) -> Row | None:
        result = self._run(cursor, values)
        return None if result.ntuples == 0 else _row(result, 0)

    def fetch_all(self, cursor: Cursor[Any], values: Sequence[bytes | None]) -> list[Row]:
        result = self._run(cursor, values)
        return [_row(result, number) for number in range(result.ntuples)]

    def _run(self, cursor: Cursor[Any], values: Sequence[bytes | None]) -> PGresult:
        connection = cursor.connection
        replan_at = self._replan_at.get(connection)
        if replan_at is None or replan_at < monotonic():
            if replan_at is not None:
                _check(connection, connection.pgconn.exec_(b"deallocate " + self._name))
                del self._replan_at[connection]  # at once: preparing it again may fail
            assert connection.prepare_threshold is None, "psycopg would deallocate it at a rollback"
            _check(connection, connection.pgconn.prepare(self._name, self._statement))
            self._replan_at[connection] = monotonic() + self._replan_after_s
        result = connection.pgconn.exec_prepared(self._name, values)  # type: ignore[arg-type] # None is null
        if result.status != ExecStatus.TUPLES_OK:
            _check(connection, result)
        return result


def run_directly(connection: Connection[Any], statements: bytes) -> None:
    """Run statements that take no values and whose results do not matter, in one round trip, such as `commit`."""
    _check(connection, connection.pgconn.exec_(statements))


def _row(result: PGresult, number: int) -> Row:
    return [result.get_value(number, column) for column in range(result.nfields)]


def _check(connection: Connection[Any], result: PGresult) -> None:
    if result.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
        return
    if connection.pgconn.status == ConnStatus.BAD:
        raise psycopg.OperationalError(connection.pgconn.get_error_message().strip() or "connection lost")
    raise errors.error_from_result(result)
