"""Revision 0016 adds tables beside the payments, and keeps every row that is there."""

import psycopg

from shared.platform.settings import DatabaseSettings
from tests.shared.platform.database.migrating import migrate_to

_ROWS = b"""
insert into payment_intents (uuid, application_id, merchant_reference, reference, amount, currency, status, expires_at)
values ('00000000-0000-7000-8000-000000000001', uuidv7(), 'order-1', 'ref1', 25000, 'LYD', 'processing', now());
insert into payment_attempts (id, intent_uuid, method, provider, state, sent_at, provider_requests)
values ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000001', 'card', 'plutu', 'unknown',
        now(), 1);
"""
_TABLES = ("operator_inquiries", "decision_proposals")


def test_attempts_are_kept_while_somebody_uses_them(empty_database: DatabaseSettings) -> None:
    """An open transaction that has an attempt locked does not hold the migration up."""
    migrate_to(empty_database, "0015")
    with psycopg.connect(empty_database.url) as paying:
        paying.execute(_ROWS)
        paying.commit()
        paying.execute("update payment_attempts set provider_requests = 2")
        migrate_to(empty_database, "0016")
        paying.commit()
        assert paying.execute("select state, provider_requests from payment_attempts").fetchall() == [
            ("unknown", 2)
        ]


def test_interrupted_migration_can_be_repeated(empty_database: DatabaseSettings) -> None:
    migrate_to(empty_database, "0016")
    with psycopg.connect(empty_database.url) as connection:
        connection.execute("update alembic_version set version_num = '0015'")
        connection.execute("drop index decision_proposals_one_open")
    migrate_to(empty_database, "0016")
    with psycopg.connect(empty_database.url) as connection:
        for table in _TABLES:
            assert connection.execute(f"select count(*) from {table}".encode()).fetchone() == (0,)
        found = connection.execute("select to_regclass('decision_proposals_one_open') is not null").fetchone()
    assert found == (True,)
