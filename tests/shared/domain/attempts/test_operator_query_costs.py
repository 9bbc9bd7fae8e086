"""The cost of operators' lists does not depend on the number of settled attempts or on the planner's statistics."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from psycopg import Cursor

from shared.domain.attempts.decision_proposals import WAITING_SQL
from shared.domain.attempts.duplicates import OPEN_DUPLICATES_SQL
from shared.domain.attempts.undecided import UNDECIDED_SQL
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import INDEX_ORDER
from shared.platform.settings import DatabaseSettings
from tests.dashboard.query_plans import explain
from tests.postgres_statistics import plan_buffers, plan_nodes

pytestmark = pytest.mark.plans

ANALYZE = "vacuum analyze payment_attempts, payment_intents, decision_proposals"
LISTS = {"undecided": UNDECIDED_SQL, "duplicates": OPEN_DUPLICATES_SQL, "to approve": WAITING_SQL}
_INTENTS = """
insert into payment_intents (application_id, merchant_reference, reference, amount, currency, status, expires_at)
select uuidv7(), n::text, 'r' || n, 1000, 'LYD', 'requires_payment_method', now() + interval '1 day'
from generate_series((select count(*) from payment_intents) + 1, (select count(*) from payment_intents) + %s) as n"""
_OPEN = """
insert into payment_attempts (intent_uuid, method, provider, state, created_at, sent_at)
select uuid, 'card', 'plutu', (array['unknown', 'awaiting_redirect', 'duplicate'])[1 + mod(row_number() over (), 3)],
       now() - interval '1 hour', now() from payment_intents"""
_SETTLED = """
insert into payment_attempts (intent_uuid, method, provider, state, handled_at, handled_note)
select uuid, 'card', 'plutu', case when mod(n, 10) = 0 then 'duplicate' else 'declined' end,
       case when mod(n, 10) = 0 then now() end, case when mod(n, 10) = 0 then 'seen to' end
from payment_intents, generate_series(1, %s) as n"""
_PROPOSED = """
insert into decision_proposals (attempt_id, outcome, reason, state, provider_requests, proposed_by)
select id, 'declined', 'not seen there', state, provider_requests, 'cli operator' from payment_attempts
where state = 'unknown'"""
_REJECTED = """
insert into decision_proposals (attempt_id, outcome, reason, state, provider_requests, proposed_by,
                                ended_as, ended_by, ended_at)
select id, 'declined', 'not seen there', state, provider_requests, 'cli operator', 'rejected', 'operator', now()
from payment_attempts limit 100000"""
OPEN_ONES = 60


@pytest.fixture
def unattended(database_settings: DatabaseSettings) -> Iterator[Database]:
    """Tables that are never vacuumed or analyzed, and a long statement timeout to fill them."""
    patient = replace(database_settings, statement_timeout_s=250)
    database = Database(patient, "monitor", **INDEX_ORDER)
    with database.cursor() as cursor:
        for table in ("payment_intents", "payment_attempts", "decision_proposals"):
            cursor.execute(f"alter table {table} set (autovacuum_enabled = off)".encode())
    yield database
    database.close()


def costs(cursor: Cursor[Any]) -> dict[str, int]:
    found = {}
    for name, statement in LISTS.items():
        plan = explain(cursor, statement.encode(), {"limit": 201, "attempt": None}, "mizan_monitor")
        scanned = [node for node in plan_nodes(plan) if node["Node Type"] == "Seq Scan"]
        assert {node["Relation Name"] for node in scanned} <= {"applications", "merchants"}
        found[name] = plan_buffers(plan)
    return found


@pytest.mark.parametrize("statistics", ["none", "of an empty table", "fresh"])
@pytest.mark.parametrize("many", [20_000, pytest.param(1_000_000, marks=pytest.mark.timeout(600))])
def test_list_costs_the_same_with_many_settled_attempts(
    unattended: Database, many: int, statistics: str
) -> None:
    with unattended.cursor() as cursor:
        if statistics == "of an empty table":
            cursor.execute(ANALYZE)
        cursor.execute(_INTENTS, (OPEN_ONES,))
        cursor.execute(_OPEN)
        cursor.execute(_PROPOSED)
        before = costs(cursor)
        cursor.execute(_SETTLED, (many // OPEN_ONES,))
        cursor.execute(_REJECTED)
        if statistics == "fresh":
            cursor.execute(ANALYZE)
        after = costs(cursor)
    assert {name: cost for name, cost in after.items() if cost > 2 * before[name] + 10} == {}
