"""Revision 0019 on a database with rows: applications have no public name, and the table refuses an unusable one."""

import psycopg
import pytest

from shared.platform.settings import DatabaseSettings
from tests.shared.platform.database.migrating import migrate_to, revision_before

_ROWS = b"""
insert into merchants (id, name) values ('00000000-0000-7000-8000-000000000001', 'Tripoli Coffee');
insert into applications (merchant_id, name) values ('00000000-0000-7000-8000-000000000001', 'shop');
"""
_REVISION = "0019"


def test_applications_have_no_public_name_at_first(empty_database: DatabaseSettings) -> None:
    before = revision_before(_REVISION)
    migrate_to(empty_database, before)
    with psycopg.connect(empty_database.url) as connection:
        connection.execute(_ROWS)
    migrate_to(empty_database, _REVISION)
    with psycopg.connect(empty_database.url, autocommit=True) as connection:
        rows = connection.execute("select public_name_ar, public_name_en from applications").fetchall()
        assert rows == [(None, None)]
        for name in ("", "x" * 61):
            with pytest.raises(psycopg.errors.CheckViolation):
                connection.execute("update applications set public_name_en = %s", (name,))
        connection.execute("update applications set public_name_ar = %s", ("م" * 60,))
        connection.execute("update alembic_version set version_num = %s", (before,))
    migrate_to(empty_database, _REVISION)
    with psycopg.connect(empty_database.url) as connection:
        rows = connection.execute("select public_name_ar from applications").fetchall()
    assert rows == [("م" * 60,)], "an interrupted migration can be repeated"
