"""The statements of the search for payments use indexes, however many payments there are."""

from uuid import UUID

import pytest

from services.monitor.search.queries import (
    EXACT_SQL,
    MERCHANT_REFERENCE_PREFIX_SQL,
    MERCHANT_REFERENCE_SQL,
    REFERENCE_PREFIX_SQL,
    SCAN_SQL,
    scan_values,
)
from shared.console.search_text import SearchText
from tests.dashboard.payment_rows import make_many
from tests.dashboard.query_plans import explain
from tests.monitor.world import MonitorWorld
from tests.postgres_statistics import plan_buffers, plan_nodes

pytestmark = pytest.mark.plans

FEW, MANY = 3_000, 60_000
_LAST_ID = UUID(int=(1 << 128) - 1)
_STATEMENTS = {
    "exact": EXACT_SQL,
    "reference": REFERENCE_PREFIX_SQL,
    "merchant's reference": MERCHANT_REFERENCE_SQL,
    "merchant's reference, beginning": MERCHANT_REFERENCE_PREFIX_SQL,
    "scan": SCAN_SQL,
}


@pytest.mark.parametrize("statistics", ["none", "of an empty table", "fresh"])
def test_search_reads_at_most_twice_the_pages_with_many_payments(
    unattended: MonitorWorld, statistics: str
) -> None:
    applications = [row[0] for row in unattended.rows("select id from applications")]
    if statistics == "of an empty table":
        unattended.run("analyze payment_intents, payment_attempts, webhook_deliveries")
    make_many(unattended, FEW, applications=applications)
    before = _costs(unattended)
    make_many(unattended, MANY, applications=applications)
    if statistics == "fresh":
        unattended.run("vacuum analyze payment_intents, payment_attempts")
    after = _costs(unattended)
    assert {name: (before[name], cost) for name, cost in after.items() if cost > 2 * before[name] + 50} == {}


def _costs(world: MonitorWorld) -> dict[str, int]:
    """Return how many pages each statement reads."""
    text = SearchText("order 77")
    ((day,),) = world.rows("select (mizan_now() - interval '30 days')::date")
    values = {
        **scan_values(text, day, _LAST_ID),
        "uuid": _LAST_ID,
        "reference": "ref77",
        "spellings": text.spellings,
    }
    costs = {}
    with world.database.cursor() as cursor:
        for name, statement in _STATEMENTS.items():
            plan = explain(cursor, statement.encode(), values, "mizan_monitor")
            scanned = {node["Relation Name"] for node in plan_nodes(plan) if node["Node Type"] == "Seq Scan"}
            assert scanned <= {"applications"}, name
            costs[name] = plan_buffers(plan)
    return costs
