"""The cost of expiry depends neither on how many intents are not due, nor on the planner's statistics."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from psycopg import Cursor

from shared.domain.intents.store import EXPIRE_SQL, EXPIRY_BATCH, NEXT_DUE_SQL
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.settings import DatabaseSettings
from tests.postgres_statistics import plan_buffers, plan_nodes, read_plan

_FILL = """
insert into payment_intents (application_id, merchant_reference, reference, amount, currency, expires_at, status)
select uuidv7(), %(kind)s || n, %(kind)s || n, 25000, 'LYD', mizan_now() + make_interval(secs => %(due_in_s)s),
       %(status)s
from generate_series(1, %(count)s) as n"""
OPEN = "requires_payment_method"

statistics = pytest.mark.parametrize("statistics", ["none", "of an empty table", "fresh"])
rows = pytest.mark.parametrize(
    "rows", [0, *(pytest.param(rows, marks=pytest.mark.plans) for rows in (20_000, 1_000_000))]
)


@pytest.fixture
def cursor(database_settings: DatabaseSettings) -> Iterator[Cursor[Any]]:
    """Return a session like the scheduler's, on a table that is never vacuumed or analyzed."""
    database = Database(replace(database_settings, statement_timeout_s=110), "scheduler", **STABLE_PLANS)
    with database.cursor() as cursor:
        cursor.execute("alter table payment_intents set (autovacuum_enabled = off)")
        yield cursor
    database.close()


@statistics
@rows
def test_idle_poll_reads_at_most_ten_pages(cursor: Cursor[Any], rows: int, statistics: str) -> None:
    """With none or a million intents that are not due, and as many that have ended."""
    with planner_knowing(cursor, statistics):
        fill(cursor, rows, "waiting-", OPEN, due_in_s=86_400)
        fill(cursor, rows, "paid-", "succeeded", due_in_s=-86_400)
    plan = explain(cursor, NEXT_DUE_SQL)
    assert {index for _, index in scans(plan)} == {"payment_intents_due"}
    assert plan_buffers(plan) <= 10


@statistics
@rows
def test_batch_reads_only_due_intents(cursor: Cursor[Any], rows: int, statistics: str) -> None:
    """By index, then by tuple id: no scan, no sort and no join, whatever the statistics say."""
    with planner_knowing(cursor, statistics):
        fill(cursor, rows, "waiting-", OPEN, due_in_s=86_400)
        fill(cursor, 3 * EXPIRY_BATCH, "due-", OPEN, due_in_s=-1)
    plan = explain(cursor, EXPIRE_SQL[EXPIRY_BATCH])
    assert scans(plan) == {("Index Scan", "payment_intents_due"), ("Tid Scan", None)}
    assert not {node["Node Type"] for node in plan_nodes(plan)} & {
        "Sort",
        "Hash Join",
        "Nested Loop",
        "Merge Join",
    }
    assert max(node["Actual Rows"] for node in plan_nodes(plan)) == EXPIRY_BATCH


@contextmanager
def planner_knowing(cursor: Cursor[Any], statistics: str) -> Iterator[None]:
    """Fill the table inside this block: the planner has no statistics, those from before, or those from after."""
    if statistics == "of an empty table":
        cursor.execute("vacuum analyze payment_intents")
    yield
    if statistics == "fresh":
        cursor.execute("vacuum analyze payment_intents")


def fill(cursor: Cursor[Any], count: int, kind: str, status: str, *, due_in_s: float) -> None:
    cursor.execute(_FILL, {"count": count, "kind": kind, "status": status, "due_in_s": due_in_s})


def explain(cursor: Cursor[Any], statement: str) -> dict[str, Any]:
    explaining = f"explain (analyze, buffers, format json) {statement}"
    return read_plan(cursor.execute(explaining.encode(), ([],)))


def scans(plan: dict[str, Any]) -> set[tuple[str, str | None]]:
    """Return how the table of intents is read: type of scan and index."""
    return {
        (node["Node Type"], node.get("Index Name"))
        for node in plan_nodes(plan)
        if node["Node Type"].endswith("Scan") and node.get("Relation Name") == "payment_intents"
    }
