"""The cost of the application list depends neither on the number of deliveries nor on statistics."""

from typing import Any

import pytest
from psycopg import Cursor

from services.monitor.applications.queries import LIST_SQL, list_parameters
from tests.dashboard.query_plans import explain
from tests.monitor.world import MonitorWorld
from tests.postgres_statistics import plan_buffers, plan_nodes

pytestmark = pytest.mark.plans

# Two fifths succeeded, two fifths are pending (first try or retry), one fifth failed.
_DELIVERIES = """
insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, tries,
                                last_status_code, next_due_at)
select uuidv7(make_interval(secs => -n)), uuidv7(), applications.id, 'payment_intent.succeeded',
       'https://shop.example.ly/hooks', 1, given.status, least(given.code, 1),
       nullif(given.code, 0), case given.status when 'pending' then now() end
from applications, generate_series(1, %s) as n, lateral (
    select (array['pending', 'pending', 'failed', 'succeeded', 'succeeded'])[1 + mod(n, 5)] as status,
           (array[0, 500, 500, 200, 200])[1 + mod(n, 5)] as code) as given"""
FEW = 1000


def cost(cursor: Cursor[Any]) -> int:
    plan = explain(cursor, LIST_SQL.encode(), list_parameters("", None), "mizan_monitor")
    scanned = {node["Relation Name"] for node in plan_nodes(plan) if node["Node Type"] == "Seq Scan"}
    assert scanned <= {"applications", "merchants"}
    return plan_buffers(plan)


@pytest.mark.parametrize("statistics", ["none", "of an empty table", "fresh"])
@pytest.mark.parametrize("many", [20_000, pytest.param(300_000, marks=pytest.mark.timeout(600))])
def test_application_list_reads_at_most_twice_the_pages_with_many_deliveries(
    unattended: MonitorWorld, many: int, statistics: str
) -> None:
    with unattended.database.cursor() as cursor:
        if statistics == "of an empty table":
            cursor.execute("analyze webhook_deliveries")
        cursor.execute(_DELIVERIES, (FEW,))
        before = cost(cursor)
        cursor.execute(_DELIVERIES.replace("-n)", f"-n - {FEW})").encode(), (many,))
        if statistics == "fresh":
            cursor.execute("vacuum analyze webhook_deliveries")
        after = cost(cursor)
    assert after <= 2 * before + 50
