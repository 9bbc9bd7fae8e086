"""For finding the first few by an index of a partitioned table."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg import Connection, Cursor

from shared.platform.database.pool import Database


@contextmanager
def in_index_order(database: Database) -> Iterator[Cursor[Any]]:
    """A transaction that reads so."""
    with database.transaction() as connection:
        yield read_in_order(connection)


def read_in_order(connection: Connection[Any]) -> Cursor[Any]:
    """Where the planner believes that a table is short, it would rather read and sort all of it: until the
    transaction ends it may not."""
    return connection.execute("set local enable_sort = off")
