"""The cost of a batch does not depend on the number of rows or on the planner's statistics."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg import Cursor

from services.webhooks.pipeline.intake import CREATE_DELIVERIES_SQL, FETCH_EVENTS_SQL
from services.webhooks.pipeline.queries import FETCH_DELIVERIES_SQL, RECORD_RESENDS_SQL, RECORD_TRIES_SQL
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.settings import DatabaseSettings
from tests.postgres_statistics import plan_buffers, plan_nodes, read_plan

TABLES = ("intent_events", "webhook_deliveries", "webhook_tries")
BATCH = 200
APPLICATIONS = 20
_FILL = """
with made as (
    insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, next_due_at)
    select uuidv7(), uuidv7(), %(application)s, 'payment_intent.canceled', 'https://shop.example/', 1, %(status)s,
           case when %(status)s = 'pending' then mizan_now() end
    from generate_series(1, %(count)s) returning id, intent_uuid
), intents as (
    insert into payment_intents (uuid, application_id, merchant_reference, reference, amount, currency, expires_at)
    select intent_uuid, %(application)s, id, id, 1000, 'LYD', mizan_now() from made where %(status)s = 'pending'
), events as (
    insert into intent_events (id, intent_uuid, seq, type, at, taken_in_at)
    select id, intent_uuid, 2, 'payment_intent.canceled', mizan_now(),
           case when %(status)s <> 'pending' then mizan_now() end from made
)
insert into webhook_tries (delivery_id, number, step, at, duration_ms, url, status_code)
select id, 1, 1, mizan_now(), 5, 'https://shop.example/', 200 from made where %(status)s <> 'pending'"""
_CHOSEN = """
select id::text, intent_uuid::text from webhook_deliveries where status = 'pending' order by id desc limit %s"""

_NO_AUTOVACUUM = """
select format('alter table %%I set (autovacuum_enabled = off)', inhrelid::regclass)
from pg_inherits where inhparent = %s::regclass"""


@pytest.fixture
def cursor(database_settings: DatabaseSettings) -> Iterator[Cursor[Any]]:
    """A database session with the service's settings, on tables without autovacuum."""
    database = Database(replace(database_settings, statement_timeout_s=110), "webhooks", **STABLE_PLANS)
    with database.cursor() as cursor:
        for table in TABLES:
            cursor.execute(_NO_AUTOVACUUM, (table,))
            for (statement,) in cursor.fetchall():
                cursor.execute(statement)
        yield cursor
    database.close()


@pytest.mark.parametrize("statistics", ["none", "of empty tables", "fresh"])
@pytest.mark.parametrize(
    "rows", [0, *(pytest.param(rows, marks=pytest.mark.plans) for rows in (20_000, 1_000_000))]
)
def test_batch_reads_only_its_own_rows(cursor: Cursor[Any], rows: int, statistics: str) -> None:
    """Rows are found by index, without sorting or hashing a table.

    With plans made while the tables were empty, and with plans that are made again if the tables were
    analyzed then.
    """
    application = _make_application(cursor)
    if statistics == "of empty tables":
        cursor.execute("vacuum analyze")
    _prepare_all(cursor)
    for execution in _executions(application, [(str(uuid4()), str(uuid4())) for _ in range(BATCH)]).values():
        cursor.execute(execution.encode())
    for number in range(APPLICATIONS):
        cursor.execute(
            _FILL, {"count": rows // APPLICATIONS, "application": UUID(int=number), "status": "succeeded"}
        )
    cursor.execute(_FILL, {"count": rows // 10 + BATCH, "application": application, "status": "pending"})
    if statistics == "fresh":
        cursor.execute("vacuum analyze")
    elif statistics == "of empty tables":
        cursor.execute("deallocate all")
        _prepare_all(cursor)
    chosen = cursor.execute(_CHOSEN, (BATCH,)).fetchall()
    for name, execution in _executions(application, chosen).items():
        plan = read_plan(cursor.execute(f"explain (analyze, buffers, format json) {execution}".encode()))
        kinds = {node["Node Type"] for node in plan_nodes(plan)}
        assert not kinds & {"Seq Scan", "Bitmap Heap Scan", "Hash Join", "Merge Join", "Sort"}, (name, kinds)
        months = {node["Relation Name"][-7:] for node in plan_nodes(plan) if _is_scan_of_a_month(node)}
        assert len(months) == 1, (name, months)
        most = max(node["Actual Rows"] * node["Actual Loops"] for node in plan_nodes(plan))
        assert most <= 2 * BATCH, (name, most)
        passed_over = max(node.get("Rows Removed by Filter", 0) for node in plan_nodes(plan))
        assert passed_over <= BATCH, (name, passed_over)
        assert plan_buffers(plan) <= 120 * BATCH, name


def _executions(application: str, chosen: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return each statement with values for a batch of (delivery, intent)."""
    ids, intents = (f"'{{{','.join(column)}}}'::uuid[]" for column in zip(*sorted(chosen), strict=True))
    claims = [
        intents,
        *map(filled, (f"'{application}'::uuid", "'2'::text", "'payment_intent.canceled'::text")),
    ]
    results = [filled(value) for value in ("5", "12", "200", "null::text", "'ok'::bytea")]
    resends = f"'{{{','.join(str(uuid4()) for _ in range(BATCH))}}}'::uuid[]"
    decisions = [filled("'pending'::text"), filled("2::smallint"), filled("10.0::float8")]
    values = {
        "fetch_events": [ids],
        "fetch_deliveries": [ids],
        "create_deliveries": [ids, *claims],
        "record_tries": [ids, filled("1::smallint"), *results, *decisions],
        "record_resends": [ids, resends, *results, filled("'x'::bytea")],
    }
    return {name: f"execute {name} ({', '.join(given)})" for name, given in values.items()}


def _prepare_all(cursor: Cursor[Any]) -> None:
    statements = {
        "fetch_events": FETCH_EVENTS_SQL,
        "fetch_deliveries": FETCH_DELIVERIES_SQL,
        "create_deliveries": CREATE_DELIVERIES_SQL,
        "record_tries": RECORD_TRIES_SQL,
        "record_resends": RECORD_RESENDS_SQL,
    }
    for name, statement in statements.items():
        cursor.execute(f"prepare {name} as {statement}".encode())


def _is_scan_of_a_month(node: dict[str, Any]) -> bool:
    is_scan = "Scan" in node["Node Type"] and node["Actual Loops"] > 0
    return is_scan and node.get("Relation Name", "").startswith(TABLES)


def filled(value: str) -> str:
    """Return SQL for an array with the same value for each item."""
    return f"array_fill({value}, array[{BATCH}])"


def _make_application(cursor: Cursor[Any]) -> str:
    row = cursor.execute(
        """with merchant as (insert into merchants (name) values ('m') returning id)
           insert into applications (merchant_id, name, webhook_url) select id, 'shop', null from merchant
           returning id::text"""
    ).fetchone()
    assert row is not None
    return str(row[0])
