"""What PostgreSQL reports about itself: sessions that wait for a lock, rows read, and query plans."""

from collections.abc import Iterator
from typing import Any

from psycopg import Cursor

from shared.platform.database.pool import Database, fetch_scalar

# PostgreSQL hides the state of other roles' sessions, but not their locks.
_COUNT_LOCK_WAITS = """
select count(distinct pid) from pg_locks join pg_stat_activity using (pid)
where not granted and datname = current_database()"""
_ROWS_READ_SEQUENTIALLY = "select seq_tup_read from pg_stat_user_tables where relname = %s"


def count_lock_waits(database: Database) -> int:
    """Return how many sessions of this database wait for a lock."""
    with database.cursor() as cursor:
        return int(fetch_scalar(cursor, _COUNT_LOCK_WAITS))


def rows_read_sequentially(cursor: Cursor[Any], table: str) -> int:
    """Return how many rows sequential scans of `table` have read so far.

    Exact for the session of `cursor` only: other sessions report with a delay.
    """
    cursor.execute("select pg_stat_force_next_flush()")
    return int(fetch_scalar(cursor, _ROWS_READ_SEQUENTIALLY, (table,)))


def read_plan(explained: Cursor[Any]) -> dict[str, Any]:
    """Return the root node from the result of `explain (analyze, buffers, format json)`."""
    row = explained.fetchone()
    assert row is not None
    plan: dict[str, Any] = row[0][0]["Plan"]
    return plan


def plan_nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the node itself and all nodes below it."""
    yield plan
    for child in plan.get("Plans", []):
        yield from plan_nodes(child)


def plan_buffers(plan: dict[str, Any]) -> int:
    """Return how many pages of tables and indexes the plan has read."""
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
