"""Looks into PostgreSQL's own books: who waits for a lock, how tables were read, and by which plan."""

from collections.abc import Iterator
from typing import Any

from psycopg import Cursor

from shared.platform.database.first_value import first_value
from shared.platform.database.pool import Database

_WAITING = (
    "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
)
_SCANNED = "select seq_tup_read from pg_stat_user_tables where relname = %s"


def waiting_for_a_lock(database: Database) -> int:
    """How many sessions."""
    with database.cursor() as cursor:
        return int(first_value(cursor.execute(_WAITING)))


def rows_read_by_scanning(cursor: Cursor[Any], table: str) -> int:
    """Of a whole table, so far. Its own session tells at once, others when they like."""
    cursor.execute("select pg_stat_force_next_flush()")
    return int(first_value(cursor.execute(_SCANNED, (table,))))


def plan_told(explained: Cursor[Any]) -> dict[str, Any]:
    """By `explain (analyze, buffers, format json)`."""
    plan: dict[str, Any] = first_value(explained)[0]["Plan"]
    return plan


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The plan's own, and all below."""
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def pages(plan: dict[str, Any]) -> int:
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
