"""Statements of the hot path, run by name and past psycopg's cursors, which cost three times what they bring here.

Values go in and come out as PostgreSQL's text. docs/decisions/0006-api-speed.md has the figures.
"""

from collections.abc import Iterable, Sequence
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


class Prepared:
    """One statement, with $1, $2 … for its values; a connection prepares it when it first meets it.

    A plan made while a table was empty is kept until somebody analyzes the table. `planned_for_s` has it made anew
    after so many seconds, where that matters.
    """

    def __init__(self, statement: str, planned_for_s: float = inf) -> None:
        self._statement = statement.encode()
        self._name = f"mizan_{next(_numbers)}".encode()
        self._planned_for_s = planned_for_s
        self._plan_again_at: WeakKeyDictionary[Connection[Any], float] = WeakKeyDictionary()

    def first_row(self, cursor: Cursor[Any], values: Sequence[bytes | None]) -> Row | None:
        result = self._run(cursor, values)
        return None if result.ntuples == 0 else _row(result, 0)

    def all_rows(self, cursor: Cursor[Any], values: Sequence[bytes | None]) -> list[Row]:
        result = self._run(cursor, values)
        return [_row(result, number) for number in range(result.ntuples)]

    def _run(self, cursor: Cursor[Any], values: Sequence[bytes | None]) -> PGresult:
        connection = cursor.connection
        plan_again_at = self._plan_again_at.get(connection)
        if plan_again_at is None or plan_again_at < monotonic():
            if plan_again_at is not None:
                _checked(connection, connection.pgconn.exec_(b"deallocate " + self._name))
                del self._plan_again_at[connection]  # before anything can go wrong
            _checked(connection, connection.pgconn.prepare(self._name, self._statement))
            self._plan_again_at[connection] = monotonic() + self._planned_for_s
        result = connection.pgconn.exec_prepared(self._name, values)  # type: ignore[arg-type] # None is null
        if result.status != ExecStatus.TUPLES_OK:
            _checked(connection, result)
        return result


def array(values: Iterable[str | None]) -> bytes:
    """PostgreSQL's text of an array, of values that need no quotes: ids, numbers, words, hexadecimal."""
    return f"{{{','.join('NULL' if value is None else value for value in values)}}}".encode()


def _row(result: PGresult, number: int) -> Row:
    return [result.get_value(number, column) for column in range(result.nfields)]


def _checked(connection: Connection[Any], result: PGresult) -> None:
    if result.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
        return
    if connection.pgconn.status == ConnStatus.BAD:
        raise psycopg.OperationalError(connection.pgconn.get_error_message().strip() or "connection lost")
    raise errors.error_from_result(result)
