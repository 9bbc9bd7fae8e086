"""Revision 0015 on a database with rows: who issued a credential is taken from the audit log."""

import psycopg

from shared.platform.settings import DatabaseSettings
from tests.shared.platform.database.migrating import migrate_to, revision_before

_ROWS = b"""
insert into merchants (id, name) values ('00000000-0000-7000-8000-000000000001', 'Tripoli Coffee');
insert into members (id, merchant_id, email, role)
values ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000001', 'a@example.ly', 'owner'),
       ('00000000-0000-7000-8000-000000000003', '00000000-0000-7000-8000-000000000001', 'b@example.ly', 'owner');
insert into applications (id, merchant_id, name)
values ('00000000-0000-7000-8000-000000000004', '00000000-0000-7000-8000-000000000001', 'Shop');
insert into credentials (application_id, kind, prefix, hash, created_at)
values ('00000000-0000-7000-8000-000000000004', 'api_key', 'pk_first0', sha256('1'), '2026-01-01 00:00:00+00'),
       ('00000000-0000-7000-8000-000000000004', 'api_key', 'pk_second', sha256('2'), '2026-01-02 00:00:00+00'),
       ('00000000-0000-7000-8000-000000000004', 'api_key', 'pk_shells', sha256('3'), '2026-01-03 00:00:00+00');
insert into audit_log (at, merchant_id, application_id, member_id, actor, action, details)
values ('2026-01-01 00:00:01+00', '00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000004',
        '00000000-0000-7000-8000-000000000002', 'a@example.ly', 'application_created', '{}'),
       ('2026-01-02 00:00:01+00', '00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000004',
        '00000000-0000-7000-8000-000000000003', 'b@example.ly', 'credential_issued',
        '{"kind": "api_key", "prefix": "pk_second"}'),
       ('2026-01-03 00:00:01+00', '00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000004',
        null, 'root', 'credential_issued', '{"kind": "api_key", "prefix": "pk_shells"}');
"""
_ISSUERS = (
    "select prefix, m.email from credentials left join members as m on m.id = issued_by order by prefix"
)


def test_issuers_of_existing_credentials_are_found(empty_database: DatabaseSettings) -> None:
    """The member who created the application, the member who issued it, or nobody for an operator."""
    migrate_to(empty_database, "0012")
    with psycopg.connect(empty_database.url) as connection:
        connection.execute(_ROWS)
    migrate_to(empty_database, "0015")
    with psycopg.connect(empty_database.url) as connection:
        found = connection.execute(_ISSUERS).fetchall()
    assert found == [("pk_first0", "a@example.ly"), ("pk_second", "b@example.ly"), ("pk_shells", None)]


def test_interrupted_migration_can_be_repeated(empty_database: DatabaseSettings) -> None:
    before = revision_before("0015")
    migrate_to(empty_database, "0015")
    with psycopg.connect(empty_database.url) as connection:
        connection.execute("update alembic_version set version_num = %s", (before,))
    migrate_to(empty_database, "0015")
