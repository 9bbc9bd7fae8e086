"""The cost of requeueing depends neither on how many rows are pending, nor on the planner's statistics."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from psycopg import Cursor, sql

from services.scheduler.jobs import requeue_deliveries, requeue_events
from services.scheduler.requeue_sweep import BATCH, WINDOW
from shared.platform.database.pool import Database, fetch_scalar
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.settings import DatabaseSettings
from tests.postgres_statistics import plan_buffers, plan_nodes, read_plan

TABLES = ("webhook_deliveries", "intent_events", "applications", "payment_intents", "outbox")
PARTITIONED = ("webhook_deliveries", "intent_events")
TYPES = {datetime: "timestamptz", UUID: "uuid", float: "float8", list: "uuid[]"}

_UNATTENDED = """
select format('alter table %%I set (autovacuum_enabled = off)', relname) from pg_class
where relkind = 'r' and relname ~ ('^(' || array_to_string(%s::text[], '|') || ')')"""
_APPLICATIONS = """
with merchant as (insert into merchants (name) values ('Tripoli Coffee') returning id)
insert into applications (merchant_id, name, webhooks_paused_at)
select id, 'shop-' || n, case when %s then mizan_now() end from merchant, generate_series(1, 200) as n
returning id"""
# 500 deliveries each share one due time.
_DELIVERIES = """
insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, next_due_at,
                                requeued_at, set_aside_at)
select uuidv7(), uuidv7(), (%(applications)s)[1 + n %% 200], 'payment_intent.succeeded', 'https://shop.example', 1,
       %(status)s,
       case when %(status)s = 'pending'
            then mizan_now() - make_interval(secs => %(overdue_s)s - (n / 500)::float8 / 1000) end,
       case when %(requeued)s then mizan_now() end, case when %(set_aside)s then mizan_now() end
from generate_series(1, %(count)s) as n"""
_EVENTS = """
insert into intent_events (id, intent_uuid, seq, type, at, taken_in_at, republished_at)
select uuidv7(make_interval(secs => -%(age_s)s)), uuidv7(), 2, %(kind)s, mizan_now(),
       case when %(taken_in)s then mizan_now() end, case when %(republished)s then mizan_now() end
from generate_series(1, %(count)s)"""
_INTENTS = """
insert into payment_intents (uuid, application_id, merchant_reference, reference, amount, currency, expires_at)
select intent_uuid, id, id, id, 25000, 'LYD', mizan_now() from intent_events
where taken_in_at is null and republished_at is null and type <> 'payment_intent.created'"""

BEGINNING: dict[str, object] = {"min_overdue_s": 900.0, "requeue_interval_s": 3600.0}
FIRST_DELIVERY: dict[str, object] = {"due": datetime(1, 1, 1, tzinfo=UTC), "id": UUID(int=0), **BEGINNING}
FIRST_EVENT: dict[str, object] = {"id": UUID(int=0), **BEGINNING}

statistics = pytest.mark.parametrize("statistics", ["none", "of empty tables", "fresh"])
rows = pytest.mark.parametrize(
    "rows", [0, *(pytest.param(rows, marks=pytest.mark.plans) for rows in (20_000, 1_000_000))]
)
# A million rows are inserted first.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def cursor(database_settings: DatabaseSettings) -> Iterator[Cursor[Any]]:
    """Return a session like the scheduler's, on tables that are never vacuumed or analyzed."""
    database = Database(replace(database_settings, statement_timeout_s=250), "scheduler", **STABLE_PLANS)
    with database.cursor() as cursor:
        for (statement,) in cursor.execute(_UNATTENDED, (list(TABLES),)).fetchall():
            cursor.execute(statement)
        yield cursor
    database.close()


@statistics
@rows
def test_requeueing_deliveries_reads_a_window_and_its_batch(
    cursor: Cursor[Any], rows: int, statistics: str
) -> None:
    """No ended deliveries, none due later, and at most a window of those requeued before.

    The batch is found by its ids, in the partitions of their months, without sort or join.
    """
    with planner_knowing(cursor, statistics):
        shops = applications(cursor)
        deliveries(cursor, rows // 2, shops, status="succeeded", overdue_s=7200)
        deliveries(cursor, rows // 4, shops, overdue_s=-7200)
        deliveries(cursor, rows // 4, shops, overdue_s=3600, requeued=True)
        deliveries(cursor, BATCH, shops, overdue_s=1800)
    plan = explain(cursor, requeue_deliveries.FIND_OVERDUE_SQL, FIRST_DELIVERY)
    assert indexes(plan, "webhook_deliveries") == {"next_due_at_id_idx"}
    assert most_rows(plan) <= WINDOW + 500
    assert plan_buffers(plan) <= 4 * WINDOW
    chosen = ids(cursor, "webhook_deliveries", "next_due_at < mizan_now() and requeued_at is null")
    plan = explain(cursor, requeue_deliveries.REQUEUE_SQL, {**bounded(chosen), **BEGINNING})
    check_requeue(plan, "webhook_deliveries")


@statistics
@rows
def test_idle_poll_reads_at_most_100_pages_where_nothing_is_overdue(
    cursor: Cursor[Any], rows: int, statistics: str
) -> None:
    """A few pages of each month are all that an idle scheduler costs."""
    with planner_knowing(cursor, statistics):
        shops = applications(cursor)
        deliveries(cursor, rows // 2, shops, status="succeeded", overdue_s=7200)
        deliveries(cursor, rows // 2, shops, overdue_s=-7200)
        events(cursor, rows // 2, age_s=7200, taken_in=True)
        events(cursor, rows // 2, age_s=7200, kind="payment_intent.created")
    for statement, values in (
        (requeue_deliveries.FIND_OVERDUE_SQL, FIRST_DELIVERY),
        (requeue_deliveries.FIND_RESUMED_SQL, {"after": UUID(int=0)}),
        (requeue_events.FIND_PENDING_SQL, FIRST_EVENT),
    ):
        plan = explain(cursor, statement, values)
        assert most_rows(plan) <= 1
        assert plan_buffers(plan) <= 100


@statistics
@rows
def test_finding_resumed_deliveries_does_not_read_all_that_stay_set_aside(
    cursor: Cursor[Any], rows: int, statistics: str
) -> None:
    """One row of each of 200 paused applications is read, however many they have; of the others a batch."""
    with planner_knowing(cursor, statistics):
        paused, resumed = applications(cursor, paused=True), applications(cursor)
        deliveries(cursor, rows // 2, paused, overdue_s=7200, set_aside=True)
        deliveries(cursor, rows // 2, resumed, status="succeeded", overdue_s=7200)
        deliveries(cursor, 2 * BATCH, resumed, overdue_s=60, set_aside=True)
    plan = explain(cursor, requeue_deliveries.FIND_RESUMED_SQL, {"after": UUID(int=0)})
    assert indexes(plan, "webhook_deliveries") == {"application_id_id_idx1"}
    assert most_rows(plan) <= BATCH
    assert plan_buffers(plan) <= 200 * 100
    chosen = ids(cursor, "webhook_deliveries", "next_due_at > mizan_now() - interval '1 hour'")
    plan = explain(cursor, requeue_deliveries.REQUEUE_RESUMED_SQL, bounded(chosen))
    check_requeue(plan, "webhook_deliveries")


@statistics
@rows
def test_requeueing_events_reads_a_window_and_its_batch(
    cursor: Cursor[Any], rows: int, statistics: str
) -> None:
    """No events that were taken in, and none without a webhook."""
    with planner_knowing(cursor, statistics):
        events(cursor, rows // 2, age_s=7200, taken_in=True)
        events(cursor, rows // 4, age_s=7200, kind="payment_intent.created")
        events(cursor, rows // 4, age_s=3600, republished=True)
        events(cursor, BATCH, age_s=1800)
        cursor.execute(_INTENTS)
    plan = explain(cursor, requeue_events.FIND_PENDING_SQL, FIRST_EVENT)
    assert indexes(plan, "intent_events") == {"id_idx"}
    assert most_rows(plan) <= WINDOW
    assert plan_buffers(plan) <= 4 * WINDOW
    chosen = ids(
        cursor,
        "intent_events",
        "id > uuid7_floor(mizan_now() - interval '50 minutes') and taken_in_at is null",
    )
    plan = explain(cursor, requeue_events.REQUEUE_SQL, {**bounded(chosen), **BEGINNING})
    check_requeue(plan, "intent_events", "id_idx")
    assert {node["Index Name"] for node in scans(plan, "payment_intents")} == {"payment_intents_pkey"}


@statistics
@rows
def test_finding_the_oldest_outbox_row_reads_at_most_ten_pages(
    cursor: Cursor[Any], rows: int, statistics: str
) -> None:
    """However many rows are in the outbox."""
    with planner_knowing(cursor, statistics):
        cursor.execute(
            "insert into outbox (topic, key, payload) select 'any', n, '{}' from generate_series(1, %s) as n",
            (rows,),
        )
    assert plan_buffers(explain(cursor, requeue_events.OLDEST_IN_OUTBOX_SQL, {})) <= 10


def check_requeue(plan: dict[str, Any], table: str, *others: str) -> None:
    assert indexes(plan, table) <= {"pkey", *others}
    months = {
        node["Relation Name"] for node in plan_nodes(plan) if node.get("Relation Name", "").startswith(table)
    }
    assert len(months - {table}) <= 2
    kinds = {node["Node Type"] for node in plan_nodes(plan)}
    assert not kinds & {"Sort", "Incremental Sort", "Seq Scan", "Hash Join", "Merge Join"} - _sorts(table)
    assert most_rows(plan) == BATCH
    assert plan_buffers(plan) <= 100 * BATCH


def _sorts(table: str) -> set[str]:
    """Return the sorts that are allowed: events go into the outbox in order."""
    return {"Sort"} if table == "intent_events" else set()


@contextmanager
def planner_knowing(cursor: Cursor[Any], statistics: str) -> Iterator[None]:
    """Fill the tables inside this block: the planner has no statistics, those from before, or those from after."""
    if statistics == "of empty tables":
        cursor.execute(f"vacuum analyze {', '.join(TABLES)}".encode())
    yield
    if statistics == "fresh":
        cursor.execute(f"vacuum analyze {', '.join(TABLES)}".encode())


def applications(cursor: Cursor[Any], *, paused: bool = False) -> list[UUID]:
    return [made for (made,) in cursor.execute(_APPLICATIONS, (paused,)).fetchall()]


def deliveries(
    cursor: Cursor[Any],
    count: int,
    shops: list[UUID],
    *,
    overdue_s: float,
    status: str = "pending",
    requeued: bool = False,
    set_aside: bool = False,
) -> None:
    values = {
        "count": count,
        "applications": shops,
        "status": status,
        "overdue_s": overdue_s,
        "requeued": requeued,
        "set_aside": set_aside,
    }
    cursor.execute(_DELIVERIES, values)


def events(
    cursor: Cursor[Any],
    count: int,
    *,
    age_s: float,
    kind: str = "payment_intent.succeeded",
    taken_in: bool = False,
    republished: bool = False,
) -> None:
    values = {"count": count, "age_s": age_s, "kind": kind, "taken_in": taken_in, "republished": republished}
    cursor.execute(_EVENTS, values)


def ids(cursor: Cursor[Any], table: str, which: str) -> list[UUID]:
    statement = f"select array(select id from {table} where {which} order by id limit {BATCH})"
    chosen: list[UUID] = fetch_scalar(cursor, statement.encode())
    assert len(chosen) == BATCH
    return chosen


def bounded(chosen: list[UUID]) -> dict[str, object]:
    return {"ids": chosen, "first": chosen[0], "last": chosen[-1]}


def explain(cursor: Cursor[Any], statement: str, values: Mapping[str, object]) -> dict[str, Any]:
    """Return the plan as the job gets it: generic, and with sorting disabled; then roll back."""
    names = list(values)
    numbered = re.sub(r"%\((\w+)\)s", lambda name: f"${names.index(name[1]) + 1}", statement)
    types = ", ".join(TYPES[type(value)] for value in values.values())
    cursor.execute("begin")
    cursor.execute("set local enable_sort = off")
    cursor.execute(f"prepare explained {f'({types})' if types else ''} as {numbered}".encode())
    given = sql.SQL("({})").format(sql.SQL(", ").join(map(sql.Literal, values.values())))
    explaining = sql.SQL("explain (analyze, buffers, format json) execute explained {}")
    plan = read_plan(cursor.execute(explaining.format(given if values else sql.SQL(""))))
    cursor.execute("rollback")
    cursor.execute("deallocate explained")
    return plan


def scans(plan: dict[str, Any], table: str) -> list[dict[str, Any]]:
    """Return the scans of this table and its partitions that found rows."""
    return [
        node
        for node in plan_nodes(plan)
        if node.get("Relation Name", "").startswith(table)
        and node["Node Type"].endswith("Scan")
        and (node["Actual Rows"] or table not in PARTITIONED)
    ]


def indexes(plan: dict[str, Any], table: str) -> set[str]:
    """Return the indexes by which it is read, without the name of the month; "None" for a sequential scan."""
    return {
        re.sub(rf"^{table}_(\d{{4}}_\d\d|default)_", "", str(node.get("Index Name")))
        for node in scans(plan, table)
    }


def most_rows(plan: dict[str, Any]) -> float:
    """Return the most rows that any scan of a table read, including those it filtered out."""
    return max(
        (
            (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
            for table in PARTITIONED
            for node in plan_nodes(plan)
            if node.get("Relation Name", "").startswith(table) and node["Node Type"].endswith("Scan")
        ),
        default=0,
    )
