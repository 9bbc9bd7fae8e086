"""A plan made for an empty table must not scan the table once it has grown."""

from dataclasses import replace
from uuid import uuid4

import pytest

from shared.domain.intents.intent import NewIntent
from shared.domain.intents.store import (
    CREATE_BATCH_SQL,
    create_batch,
    create_or_find,
    find_batch,
    find_intent,
)
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.settings import DatabaseSettings
from tests.postgres_statistics import plan_nodes, read_plan, rows_read_sequentially

_FILL = """
insert into payment_intents (application_id, merchant_reference, reference, amount, currency, expires_at)
select uuidv7(), 'filled-' || n, 'f' || n, 25000, 'LYD', mizan_now() + interval '20 days'
from generate_series(1, %s) as n"""


@pytest.mark.parametrize(
    "rows",
    [
        0,
        pytest.param(20_000, marks=pytest.mark.plans),
        pytest.param(1_000_000, marks=pytest.mark.plans),
    ],
)
def test_hot_statements_never_scan_the_whole_table(database_settings: DatabaseSettings, rows: int) -> None:
    """Prepared on a table vacuumed while empty, as in a new installation; then it grows without being analyzed."""
    database = Database(replace(database_settings, statement_timeout_s=110), "test", **STABLE_PLANS)
    new = NewIntent(uuid4(), "order-1", 1_000, "LYD")
    with database.cursor() as cursor:
        cursor.execute("alter table payment_intents set (autovacuum_enabled = off)")
        cursor.execute("vacuum analyze payment_intents")
        intent, _ = create_or_find(cursor, new)
        for _ in range(10):
            create_or_find(cursor, new)
            create_batch(cursor, [new] * 8)
            find_intent(cursor, intent.uuid)
            find_batch(cursor, [intent.uuid] * 8)
        cursor.execute(_FILL, (rows,))
        before = rows_read_sequentially(cursor, "payment_intents")
        assert create_or_find(cursor, new) == (intent, False)
        assert create_batch(cursor, [new] * 8) == [None] * 8
        created = create_batch(cursor, [replace(new, merchant_reference=f"order-{n}") for n in range(9)])
        assert [n for n, found in enumerate(created) if found is None] == [1]
        assert find_intent(cursor, intent.uuid) == intent
        assert find_batch(cursor, [uuid4(), intent.uuid]) == [None, intent]
        assert rows_read_sequentially(cursor, "payment_intents") == before
    database.close()


def test_the_statement_of_a_batch_reads_no_table(database: Database) -> None:
    """It has nothing to join, so its plan is the same whatever the sizes of tables are."""
    with database.cursor() as cursor:
        plan = read_plan(cursor.execute(f"explain (generic_plan, format json) {CREATE_BATCH_SQL}".encode()))
    assert {node["Node Type"] for node in plan_nodes(plan)} == {"ModifyTable", "Function Scan", "CTE Scan"}
