"""Row-level security makes the dashboard's statements read few more pages, and plan no tables that they do not need."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg import Cursor

from services.dashboard.deliveries.queries import TRIES_SQL
from services.dashboard.payments.forms import PaymentFilters
from services.dashboard.payments.queries import page_statement
from shared.domain.intents.states import IntentStatus
from shared.platform.database.pool import Database
from shared.platform.database.roles import OWNER
from shared.platform.database.stable_plans import INDEX_ORDER
from shared.platform.settings import Settings
from tests.dashboard.payment_rows import deliver_all, make_many
from tests.dashboard.query_plans import explain
from tests.dashboard.world import DashboardWorld
from tests.postgres_statistics import plan_buffers, plan_nodes

pytestmark = pytest.mark.plans

_FOR_THE_POLICIES = 30
"""Pages that are read once for a statement: the merchant's applications, for each table."""


@pytest.fixture
def filled(settings: Settings) -> Iterator[DashboardWorld]:
    database = Database(settings.database, "dashboard", **INDEX_ORDER)
    world = DashboardWorld(settings, database, database)
    make_many(world, 5_000, apart=timedelta(seconds=60), applications=[world.application.id, uuid4()])
    deliver_all(world)
    for table in ("payment_intents", "payment_attempts", "webhook_deliveries", "webhook_tries"):
        world.run(f"vacuum analyze {table}")
    yield world
    database.close()


@pytest.mark.parametrize("size", [50, 1000])
@pytest.mark.parametrize(
    "filters",
    [PaymentFilters(), PaymentFilters(status=IntentStatus.CANCELED), PaymentFilters(duplicates=True)],
    ids=["all", "canceled", "duplicates"],
)
def test_list_and_export_of_payments_read_at_most_a_tenth_more(
    filled: DashboardWorld, filters: PaymentFilters, size: int
) -> None:
    """In particular, the payment of an attempt is not looked up to see whose the attempt is."""
    statement = page_statement(filled.application.id, filters, None, size)
    with filled.database.cursor() as cursor:
        secured, unsecured = (explain(cursor, *statement), explain(cursor, *statement, role=OWNER))
    assert secured["Actual Rows"] == unsecured["Actual Rows"] > 0
    assert plan_buffers(secured) <= 1.1 * plan_buffers(unsecured) + _FOR_THE_POLICIES
    assert _scans(secured, "payment_intents") == _scans(unsecured, "payment_intents")


def test_tries_are_listed_without_planning_all_months_of_deliveries(filled: DashboardWorld) -> None:
    with filled.database.cursor() as cursor:
        plan = _explain_tries(cursor, filled.application.id)
    assert plan["Actual Rows"] == 1
    assert not [node for node in plan_nodes(plan) if "deliveries" in node.get("Relation Name", "")]


def _explain_tries(cursor: Cursor[Any], application: UUID) -> dict[str, Any]:
    newest = "select id from webhook_deliveries where application_id = %s order by id desc limit 1"
    ((delivery,),) = cursor.execute(newest, (application,)).fetchall()
    return explain(
        cursor,
        TRIES_SQL.encode(),
        {"application": application, "delivery": delivery, "delivery_version": 1},
    )


def _scans(plan: dict[str, Any], table: str) -> int:
    return sum(node.get("Relation Name") == table for node in plan_nodes(plan))
