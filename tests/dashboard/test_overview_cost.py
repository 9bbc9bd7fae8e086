"""The overview reads a bounded number of rows through indexes, whatever the planner's statistics are."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from psycopg import Cursor

from services.dashboard.overview.queries import (
    NEWEST_TRIED_SQL,
    PAYMENTS_SQL,
    SETUP_STATUS_SQL,
    SUCCEEDED,
    TIMES_SQL,
    TRIED,
    setup_parameters,
)
from shared.console.days import first_uuid_at, local_day, start_of_day
from shared.domain.intents.states import IntentStatus
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import INDEX_ORDER
from shared.platform.settings import Settings
from tests.dashboard.payment_rows import deliver_all, make_many
from tests.dashboard.query_plans import explain
from tests.dashboard.world import DashboardWorld
from tests.postgres_statistics import plan_buffers, plan_nodes

pytestmark = pytest.mark.plans

FEW = 5_000
SPAN = timedelta(days=10)
_TABLES = ("payment_intents", "webhook_deliveries", "webhook_tries")


@pytest.fixture
def patient(settings: Settings) -> Iterator[DashboardWorld]:
    longer = replace(settings, database=replace(settings.database, statement_timeout_s=250))
    database = Database(longer.database, "dashboard", **INDEX_ORDER)
    yield DashboardWorld(longer, database, database)
    database.close()


def fill(world: DashboardWorld, count: int) -> None:
    """Insert payments with deliveries. Half of them belong to other applications."""
    world.run("truncate payment_intents, payment_attempts, webhook_deliveries, webhook_tries")
    make_many(world, count, apart=SPAN / count, applications=[world.application.id, uuid4()])
    deliver_all(world)


def cost_of_newest(cursor: Cursor[Any], world: DashboardWorld) -> dict[str, int]:
    now = datetime.now(UTC)
    found = {}
    for name, statement, facets in (("tried", NEWEST_TRIED_SQL, TRIED), ("times", TIMES_SQL, SUCCEEDED)):
        values = {
            "application": world.application.id,
            "from_id": first_uuid_at(now - SPAN),
            "until_id": first_uuid_at(now),
            "facets": facets,
        }
        plan = explain(cursor, statement.encode(), values)
        assert not [
            node for node in plan_nodes(plan) if node["Node Type"] in ("Seq Scan", "Bitmap Heap Scan")
        ]
        found[name] = plan_buffers(plan)
    steps = explain(cursor, SETUP_STATUS_SQL.encode(), setup_parameters(world.application.id))
    found["steps"] = plan_buffers(steps)
    return found


@pytest.mark.parametrize("statistics", ["none", "of an empty table", "fresh"])
@pytest.mark.parametrize("many", [30_000, pytest.param(1_000_000, marks=pytest.mark.timeout(600))])
def test_overview_reads_at_most_twice_the_pages_with_many_rows(
    patient: DashboardWorld, many: int, statistics: str
) -> None:
    costs = []
    for count in (FEW, many):
        if statistics == "of an empty table":
            analyze(patient)
        fill(patient, count)
        if statistics == "fresh":
            analyze(patient)
        with patient.database.cursor() as cursor:
            costs.append(cost_of_newest(cursor, patient))
    few, many_more = costs
    assert {name: (few[name], cost) for name, cost in many_more.items() if cost > 2 * few[name]} == {}


def test_payments_are_counted_with_an_index_only_scan(patient: DashboardWorld) -> None:
    """The index includes the amount, and no more rows are read than are shown."""
    fill(patient, 20_000)
    analyze(patient)
    days = [local_day(datetime.now(UTC)) - timedelta(days=back) for back in range(14)]
    values = {
        "application": patient.application.id,
        "statuses": list(IntentStatus),
        "starts": [start_of_day(day) for day in days],
        "ends": [start_of_day(day + timedelta(days=1)) for day in days],
    }
    with patient.database.cursor() as cursor:
        plan = explain(cursor, PAYMENTS_SQL.encode(), values)
    [scan] = [node for node in plan_nodes(plan) if node.get("Relation Name") == "payment_intents"]
    assert (scan["Node Type"], scan["Index Name"]) == ("Index Only Scan", "payment_intents_by_application")
    assert scan["Heap Fetches"] == 0
    assert plan_buffers(plan) < 600


def analyze(world: DashboardWorld) -> None:
    for table in _TABLES:
        world.run(f"vacuum analyze {table}")
