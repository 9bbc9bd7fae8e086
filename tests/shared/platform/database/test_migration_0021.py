"""Revision 0021 on a database with rows: earlier events have no wrong code, and it can be repeated."""

import psycopg

from shared.platform.settings import DatabaseSettings
from tests.shared.platform.database.migrating import migrate_to, revision_before

_REVISION = "0021"


def test_earlier_events_have_no_wrong_code(empty_database: DatabaseSettings) -> None:
    before = revision_before(_REVISION)
    migrate_to(empty_database, before)
    with psycopg.connect(empty_database.url) as connection:
        connection.execute(
            """insert into intent_events (id, intent_uuid, seq, type, at)
               values (uuidv7(), uuidv7(), 1, 'payment_intent.created', now())"""
        )
    for _ in range(2):
        migrate_to(empty_database, _REVISION)
        with psycopg.connect(empty_database.url) as connection:
            assert connection.execute("select wrong_code from intent_events").fetchall() == [(None,)]
            connection.execute("update alembic_version set version_num = %s", (before,))
