"""The cost of a page does not depend on the number of deliveries, nor on the planner's statistics."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg import Cursor

from services.dashboard.deliveries.forms import LAST_ID, DeliveryFilters, read_delivery_filters
from services.dashboard.deliveries.queries import PAGE_SIZE, page_statement
from services.dashboard.deliveries.search import BY_INTENT_SQL, SCAN_SQL, scan_values
from shared.console.bounded_search import BATCH, PageRequest
from shared.console.days import first_uuid_at
from shared.domain.deliveries.bulk_selection import (
    BATCH_SQL,
    COUNT_SQL,
    FACETS,
    MAX_COUNTED,
    OLDEST_SQL,
    BulkResendKind,
)
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import INDEX_ORDER
from shared.platform.settings import DatabaseSettings
from tests.dashboard.query_plans import explain
from tests.postgres_statistics import plan_buffers, plan_nodes

DAYS = 60
APPLICATION = uuid4()
# Twelve facets in turn, over sixty days. Every hundredth delivery belongs to another application.
_FILL = """
insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, tries,
                                next_due_at, last_status_code, last_failure)
select uuidv7(make_interval(secs => -86400.0 * %(days)s * (%(count)s - n) / %(count)s)), uuidv7(),
       case when n %% 100 = 0 then uuidv7() else %(application)s end,
       case n %% 2 when 0 then 'payment_intent.succeeded' else 'payment_intent.canceled' end, 'https://shop.example/',
       1, status, 1, case when status = 'pending' then mizan_now() end, code,
       case when code is null then 'timeout' end
from (select n, case n / 4 %% 3 when 0 then 'pending' when 1 then 'succeeded' else 'failed' end as status,
             case n / 2 %% 2 when 0 then 200 + 100 * (n / 4 %% 3) end as code
      from generate_series(1, %(count)s) as n) as made"""
_RARE = """
insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, tries,
                                last_status_code)
select uuidv7(make_interval(days => -5 * n - 3)), uuidv7(), %s, 'payment_intent.succeeded', 'https://shop.example/', 1,
       'succeeded', 2, 503
from generate_series(1, 7) as n"""
# With another application, and another merchant.
_MERCHANT = """
with made as (insert into merchants (name) values ('mine'), ('other') returning id, name)
insert into applications (id, merchant_id, name)
select case n when 1 then %s else uuidv7() end, id, name from made, generate_series(1, 2) as n
where name = 'mine' or n = 2"""
_PAST_MONTHS = """
select make_month_partitions((date_trunc('month', now() at time zone 'UTC') - make_interval(months => n))::date)
from generate_series(1, 3) as n"""
_UNATTENDED = """
select format('alter table %I set (autovacuum_enabled = off)', inhrelid::regclass)
from pg_inherits where inhparent = 'webhook_deliveries'::regclass"""

_PAYMENTS = """
insert into payment_intents (uuid, application_id, merchant_reference, reference, amount, currency, expires_at)
select intent_uuid, %s, id, id, 1000, 'LYD', now() from webhook_deliveries order by id desc limit 5000"""

CASES = {
    "all": {},
    "common": {"status": "succeeded"},
    "failed": {"status": "failed"},
    "event": {"event": "payment_intent.canceled"},
    "answer": {"answer": "2xx"},
    "silent": {"answer": "nothing"},
    "three filters": {"status": "failed", "event": "payment_intent.canceled", "answer": "4xx"},
    "rare": {"status": "succeeded", "answer": "5xx"},
    "never": {"answer": "3xx", "status": "pending"},
}


@pytest.fixture
def cursor(database_settings: DatabaseSettings) -> Iterator[Cursor[Any]]:
    """A session with the dashboard's settings, on tables without autovacuum."""
    database = Database(replace(database_settings, statement_timeout_s=250), "dashboard", **INDEX_ORDER)
    with database.cursor() as cursor:
        cursor.execute(_PAST_MONTHS)
        cursor.execute(_MERCHANT, (APPLICATION,))
        for (statement,) in cursor.execute(_UNATTENDED).fetchall():
            cursor.execute(statement)
        yield cursor
    database.close()


@pytest.mark.plans
@pytest.mark.timeout(300)
@pytest.mark.parametrize("statistics", ["none", "fresh"])
@pytest.mark.parametrize("many", [30_000, 1_000_000])
def test_page_reads_at_most_twice_the_pages_it_reads_with_a_thousand_deliveries(
    cursor: Cursor[Any], many: int, statistics: str
) -> None:
    """For the newest page and one in the middle, with all kinds of filters."""
    _fill(cursor, 1_000, statistics)
    cursor.execute(_RARE, (APPLICATION,))
    few = _costs(cursor)
    _fill(cursor, many - 1_000, statistics)
    costs = _costs(cursor)
    assert costs.keys() == few.keys()
    for case, (cost, rows) in costs.items():
        cost_of_few, rows_of_few = few[case]
        print(f"{case:24} {cost_of_few:5} → {cost:5} pages for {rows} rows")
        assert rows == rows_of_few, case
        assert cost <= 2 * cost_of_few, (case, cost_of_few, cost)


@pytest.mark.plans
def test_page_of_deliveries_reads_a_bounded_number_of_rows(cursor: Cursor[Any]) -> None:
    """At most one page for each facet. No row is read and then discarded."""
    _fill(cursor, 30_000, "none")
    for name, given in CASES.items():
        filters = read_delivery_filters(given)
        plan = _plan(cursor, filters, None)
        kinds = {node["Node Type"] for node in plan_nodes(plan)}
        assert not kinds & {"Seq Scan", "Bitmap Heap Scan", "Hash Join", "Merge Join"}, (name, kinds)
        passed_over = sum(node.get("Rows Removed by Filter", 0) for node in plan_nodes(plan))
        assert passed_over == 0, (name, passed_over)
        scanned = sum(
            node["Actual Rows"] * node["Actual Loops"]
            for node in plan_nodes(plan)
            if node["Node Type"] == "Index Scan"
        )
        # One more of each month, because their scans are merged.
        assert scanned <= (PAGE_SIZE + 20) * len(filters.facets or [0]), (name, scanned)


@pytest.mark.plans
@pytest.mark.parametrize("kind", list(BulkResendKind))
def test_counting_and_resending_many_deliveries_reads_a_bounded_number_of_pages(
    cursor: Cursor[Any], kind: BulkResendKind
) -> None:
    values: dict[str, object] = {
        "application": APPLICATION,
        "facets": FACETS[kind],
        "after_id": UUID(int=0),
        "before_id": UUID(int=2**128 - 1),
        "requested_at": datetime.now(UTC) + timedelta(days=1),
    }
    _fill(cursor, 1_000, "none")
    statements = (BATCH_SQL[kind], OLDEST_SQL)
    few = [plan_buffers(_explained(cursor, statement, values)) for statement in statements]
    _fill(cursor, 60_000, "none")
    many = [plan_buffers(_explained(cursor, statement, values)) for statement in statements]
    assert all(after <= 2 * before for before, after in zip(few, many, strict=True)), (few, many)
    plan = _explained(cursor, COUNT_SQL, values)
    assert max(node["Actual Rows"] for node in plan_nodes(plan)) <= MAX_COUNTED + 1


@pytest.mark.plans
@pytest.mark.timeout(300)
@pytest.mark.parametrize("statistics", ["none", "fresh"])
@pytest.mark.parametrize("many", [30_000, 1_000_000])
def test_search_reads_a_bounded_number_of_deliveries(cursor: Cursor[Any], many: int, statistics: str) -> None:
    """A batch, newest first, with the payment of each. Deliveries of known payments are found by index."""
    _fill(cursor, many, statistics)
    cursor.execute(_PAYMENTS, (APPLICATION,))
    intents = [row[0] for row in cursor.execute("select uuid from payment_intents limit 200")]
    request = PageRequest((datetime.now(UTC) - timedelta(days=30)).date(), None, PAGE_SIZE)
    for given in ({}, {"status": "failed"}):
        filters = read_delivery_filters({"id": "no such thing", **given})
        assert filters.text is not None
        values = scan_values(APPLICATION, filters, filters.text, request, LAST_ID)
        for statement in (SCAN_SQL, BY_INTENT_SQL):
            plan = _explained(cursor, statement, values | {"intents": intents})
            for node in plan_nodes(plan):
                assert node["Node Type"] not in ("Seq Scan", "Bitmap Heap Scan", "Hash Join", "Merge Join"), (
                    plan
                )
                assert node["Actual Rows"] <= BATCH + 20, node
            assert plan_buffers(plan) < 12 * BATCH, given


def test_new_partitions_have_the_index_of_deliveries(cursor: Cursor[Any]) -> None:
    cursor.execute("select make_month_partitions(date '2031-05-01')")
    cursor.execute(
        """select count(*) from pg_inherits join pg_index on indexrelid = inhrelid
           where inhparent = 'webhook_deliveries_facets'::regclass
             and indrelid = 'webhook_deliveries_2031_05'::regclass and indisvalid"""
    )
    assert cursor.fetchall() == [(1,)]
    parts = "(select count(*) from pg_inherits where inhparent = '{}'::regclass)"
    cursor.execute(
        f"select {parts.format('webhook_deliveries')} = {parts.format('webhook_deliveries_facets')}".encode()
    )
    assert cursor.fetchall() == [(True,)]


def _fill(cursor: Cursor[Any], count: int, statistics: str) -> None:
    cursor.execute(_FILL, {"count": count, "application": APPLICATION, "days": DAYS})
    if statistics == "fresh":
        cursor.execute("vacuum analyze webhook_deliveries")


def _costs(cursor: Cursor[Any]) -> dict[str, tuple[int, int]]:
    """Return for each case the pages that are read and the rows that are found."""
    middle = first_uuid_at(datetime.now(UTC) - timedelta(days=DAYS / 4))
    a_day = (datetime.now(UTC) - timedelta(days=20)).date()
    cases: dict[tuple[str, UUID | None], DeliveryFilters] = {
        (name, before): read_delivery_filters(given)
        for before in (None, middle)
        for name, given in CASES.items()
    }
    cases[f"until {a_day}", None] = read_delivery_filters({"until": str(a_day), "status": "failed"})
    cases["searched", None] = replace(DeliveryFilters(), searched_id=uuid4())
    costs = {}
    for (name, before), filters in cases.items():
        plan = _plan(cursor, filters, before)
        costs[f"{name}{' from the middle' if before else ''}"] = (
            plan_buffers(plan),
            int(plan["Actual Rows"]),
        )
    return costs


def _plan(cursor: Cursor[Any], filters: DeliveryFilters, before: UUID | None) -> dict[str, Any]:
    return _explained(cursor, *page_statement(APPLICATION, filters, before))


def _explained(cursor: Cursor[Any], statement: str, values: dict[str, object]) -> dict[str, Any]:
    with cursor.connection.transaction():
        explain(cursor, statement.encode(), values)  # the first run also reads the catalogs
        return explain(cursor, statement.encode(), values)
