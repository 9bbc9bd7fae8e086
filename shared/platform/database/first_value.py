"""The one value of a statement that always returns a row."""

from typing import Any

from psycopg import Cursor


def first_value(cursor: Cursor[Any]) -> Any:
    row = cursor.fetchone()
    assert row is not None
    return row[0]
