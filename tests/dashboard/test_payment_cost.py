"""The cost of a page does not depend on the number of payments, nor on the planner's statistics."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg import Cursor

from services.dashboard.payments.forms import PaymentFilters
from services.dashboard.payments.queries import LAST_ID, PAGE_SIZE, page_statement
from services.dashboard.payments.search import (
    EXACT_SQL,
    MAX_BY_PREFIX,
    MERCHANT_REFERENCE_PREFIX_SQL,
    REFERENCE_PREFIX_SQL,
    SCAN_SQL,
    scan_values,
)
from shared.console.bounded_search import BATCH, PageRequest
from shared.console.days import first_uuid_at, local_day
from shared.console.search_text import SearchText
from shared.domain.intents.states import IntentStatus
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import INDEX_ORDER
from shared.platform.settings import Settings
from tests.dashboard.payment_rows import make_many
from tests.dashboard.query_plans import explain
from tests.dashboard.world import DashboardWorld
from tests.postgres_statistics import plan_buffers, plan_nodes

pytestmark = pytest.mark.plans

FEW = 1_000
SPAN = timedelta(days=14)
_TABLES = ("payment_intents", "payment_attempts")


@pytest.fixture
def unattended(settings: Settings) -> Iterator[DashboardWorld]:
    """A world with tables without autovacuum, and a long statement timeout to fill them."""
    patient = replace(settings, database=replace(settings.database, statement_timeout_s=250))
    database = Database(patient.database, "dashboard", **INDEX_ORDER)
    world = DashboardWorld(patient, database, database)
    for table in _TABLES:
        world.run(f"alter table {table} set (autovacuum_enabled = off)")
    yield world
    database.close()


def filters_of(world: DashboardWorld) -> dict[str, PaymentFilters]:
    """Return filters of each kind, which match a whole page or nothing."""
    today = local_day(datetime.now(UTC))
    return {
        "all": PaymentFilters(),
        **{status: PaymentFilters(status=status) for status in IntentStatus},
        "duplicates": PaymentFilters(duplicates=True),
        "duplicates that are paid": PaymentFilters(duplicates=True, status=IntentStatus.SUCCEEDED),
        "a few days": PaymentFilters(since=today - timedelta(days=8), until=today - timedelta(days=4)),
        "since": PaymentFilters(since=today - timedelta(days=10), status=IntentStatus.SUCCEEDED),
    }


def costs(cursor: Cursor[Any], application: UUID, filters: dict[str, PaymentFilters]) -> dict[str, int]:
    """Return the pages that are read for the first page of each filter, and for one in the middle."""
    middle = cursor.execute(
        "select uuid from payment_intents where application_id = %s order by uuid desc offset 400 limit 1",
        (application,),
    ).fetchone()
    assert middle is not None
    found = {}
    for name, each in filters.items():
        for where, before in (("top", None), ("middle", middle[0])):
            plan = explain(cursor, *page_statement(application, each, before, PAGE_SIZE))
            assert not [
                node for node in plan_nodes(plan) if node["Node Type"] in ("Seq Scan", "Bitmap Heap Scan")
            ]
            found[f"{name}, {where}"] = plan_buffers(plan)
    return found


@pytest.mark.parametrize("statistics", ["none", "of an empty table", "fresh"])
@pytest.mark.parametrize("many", [20_000, pytest.param(1_000_000, marks=pytest.mark.timeout(600))])
def test_page_of_payments_reads_at_most_twice_the_pages_with_many(
    unattended: DashboardWorld, many: int, statistics: str
) -> None:
    """One application has that many payments, and other applications have as many."""
    mine, neighbours = unattended.application.id, [uuid4() for _ in range(3)]
    if statistics == "of an empty table":
        analyze(unattended)
    make_many(unattended, FEW, apart=SPAN / FEW, one_duplicate_in=5)
    if statistics == "fresh":
        analyze(unattended)
    with unattended.database.cursor() as cursor:
        before = costs(cursor, mine, filters_of(unattended))
    make_many(
        unattended, many, apart=SPAN / many, applications=[mine, mine, mine, *neighbours], one_duplicate_in=20
    )
    if statistics == "fresh":
        analyze(unattended)
    with unattended.database.cursor() as cursor:
        after = costs(cursor, mine, filters_of(unattended))
    too_much = {name: (before[name], cost) for name, cost in after.items() if cost > 2 * before[name] + 5}
    assert too_much == {}


@pytest.mark.parametrize("statistics", ["none", "of an empty table", "fresh"])
@pytest.mark.parametrize("many", [20_000, pytest.param(1_000_000, marks=pytest.mark.timeout(600))])
def test_search_reads_a_bounded_number_of_payments(
    unattended: DashboardWorld, many: int, statistics: str
) -> None:
    """References are found by their indexes. A scan reads at most one batch of each status."""
    mine, neighbours = unattended.application.id, [uuid4() for _ in range(3)]
    if statistics == "of an empty table":
        analyze(unattended)
    make_many(
        unattended, many, apart=SPAN / many, applications=[mine, mine, mine, *neighbours], one_duplicate_in=20
    )
    if statistics == "fresh":
        analyze(unattended)
    request = PageRequest(local_day(datetime.now(UTC)) - timedelta(days=30), None, PAGE_SIZE)
    with unattended.database.cursor() as cursor:
        for search in ("no such thing", "order 1", "ref12345", str(mine)):
            text = SearchText(search)
            values = {
                "application": mine,
                "uuid": text.uuid,
                "reference": text.reference,
                "spellings": text.spellings,
            }
            for statement in (EXACT_SQL, REFERENCE_PREFIX_SQL, MERCHANT_REFERENCE_PREFIX_SQL):
                plan = explain(cursor, statement.encode(), values)
                # Our references are of all merchants: row-level security hides those of others.
                check_nodes(plan, MAX_BY_PREFIX + 1, most_hidden=MAX_BY_PREFIX)
                # At most one page for each row, and some to find the first ones.
                assert plan_buffers(plan) < 2 * MAX_BY_PREFIX + 50, (search, statement)
        for filters in (
            PaymentFilters(search="no such thing"),
            PaymentFilters(search="7", status=IntentStatus.CANCELED),
            PaymentFilters(declined=True),
            PaymentFilters(declined=True, search="no such thing"),
            PaymentFilters(duplicates=True, search="1"),
        ):
            for before in (LAST_ID, first_uuid_at(datetime.now(UTC) - SPAN / 2)):
                plan = explain(cursor, SCAN_SQL.encode(), scan_values(mine, filters, request, before))
                check_nodes(plan, BATCH)
                assert plan_buffers(plan) < 12 * BATCH, filters


def check_nodes(plan: dict[str, Any], most_rows: int, most_hidden: int = 0) -> None:
    """Check that rows are found by indexes, none is passed over by a scan, and no scan returns too many."""
    for node in plan_nodes(plan):
        assert node["Node Type"] not in ("Seq Scan", "Bitmap Heap Scan"), plan
        if node["Node Type"] == "Sort":  # of the newest of each status, or of the attempts of one payment
            assert all(child["Actual Rows"] <= len(IntentStatus) * BATCH for child in node["Plans"]), plan
        if node["Node Type"] in ("Index Scan", "Index Only Scan"):
            assert node["Actual Rows"] <= most_rows, node
            assert node.get("Rows Removed by Filter", 0) <= most_hidden, node


def analyze(world: DashboardWorld) -> None:
    for table in _TABLES:
        world.run(f"vacuum analyze {table}")
