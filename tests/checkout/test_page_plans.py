"""The payment page's statement is prepared: a plan made on empty tables must not scan them once they have grown."""

from contextlib import closing
from dataclasses import replace
from uuid import UUID

import pytest

from services.checkout.dependencies import open_database
from services.checkout.payments.checkout_state import load_checkout_state
from shared.platform.database.pool import fetch_scalar
from shared.platform.settings import DatabaseSettings
from tests.postgres_statistics import rows_read_sequentially

_TABLES = ("payment_intents", "payment_attempts", "code_challenges", "provider_pages", "application_methods")
_INTENTS = """
insert into payment_intents (application_id, merchant_reference, reference, amount, currency, expires_at)
select %s, 'filled-' || n, 'f' || n, 25000, 'LYD', mizan_now() + interval '20 days' from generate_series(1, %s) as n
returning uuid"""
_ATTEMPTS = """
insert into payment_attempts (intent_uuid, method, provider, state)
select uuid, 'card', 'sandbox', 'declined' from payment_intents"""
_PREPARED = "select count(*) from pg_prepared_statements where statement like '%code_challenges%'"


@pytest.mark.parametrize(
    "rows",
    [
        100,
        pytest.param(20_000, marks=pytest.mark.plans),
        pytest.param(1_000_000, marks=pytest.mark.plans),
    ],
)
def test_page_never_scans_a_table(
    database_settings: DatabaseSettings, application_id: UUID, rows: int
) -> None:
    settings = replace(database_settings, statement_timeout_s=200)
    with closing(open_database(settings)) as database, database.cursor() as cursor:
        for table in _TABLES:
            cursor.execute(f"alter table {table} set (autovacuum_enabled = off)".encode())
            cursor.execute(f"vacuum analyze {table}".encode())
        intent = fetch_scalar(cursor, _INTENTS, (application_id, 1))
        for _ in range(10):
            assert load_checkout_state(cursor, intent) is not None
        assert fetch_scalar(cursor, _PREPARED) == 1
        cursor.execute("update payment_intents set merchant_reference = 'first', reference = 'first'")
        cursor.execute(_INTENTS, (application_id, rows))
        cursor.execute(_ATTEMPTS)
        before = [rows_read_sequentially(cursor, table) for table in _TABLES]
        found = load_checkout_state(cursor, intent)
        assert found is not None
        assert found.attempt is not None
        assert [rows_read_sequentially(cursor, table) for table in _TABLES] == before
