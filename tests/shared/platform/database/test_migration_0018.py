"""Revision 0018 on a database with rows: nobody is told of old changes, and open sessions are asked."""

import psycopg

from shared.platform.settings import DatabaseSettings
from tests.shared.platform.database.migrating import migrate_to, revision_before

_ROWS = b"""
insert into merchants (id, name) values ('00000000-0000-7000-8000-000000000001', 'Tripoli Coffee');
insert into users (id, email, password_hash)
values ('00000000-0000-7000-8000-000000000002', 'joined@example.ly', 'x');
insert into members (merchant_id, email, role, user_id, joined_at)
values ('00000000-0000-7000-8000-000000000001', 'joined@example.ly', 'owner', '00000000-0000-7000-8000-000000000002',
        mizan_now()),
       ('00000000-0000-7000-8000-000000000001', 'invited@example.ly', 'owner', null, null);
insert into sessions (hash, person_id, expires_at) select sha256('1'), id, mizan_now() from members limit 1;
"""
_REVISION = "0018"


def test_changes_are_told_from_the_migration_on(empty_database: DatabaseSettings) -> None:
    before = revision_before(_REVISION)
    migrate_to(empty_database, before)
    with psycopg.connect(empty_database.url) as connection:
        connection.execute(_ROWS)
    migrate_to(empty_database, _REVISION)
    with psycopg.connect(empty_database.url) as connection:
        members = connection.execute("select email, changes_seen_at is not null from members order by email")
        assert members.fetchall() == [("invited@example.ly", False), ("joined@example.ly", True)]
        assert connection.execute("select password_at from sessions").fetchall() == [(None,)]
        connection.execute("update alembic_version set version_num = %s", (before,))
        seen = connection.execute("select changes_seen_at from members order by id").fetchall()
    migrate_to(empty_database, _REVISION)
    with psycopg.connect(empty_database.url) as connection:
        again = connection.execute("select changes_seen_at from members order by id").fetchall()
    assert again == seen, "an interrupted migration can be repeated"
