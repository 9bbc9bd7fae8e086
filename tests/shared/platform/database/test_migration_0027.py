"""Revision 0027 on a database with rows: applications with a Plutu account become live, and stay what they are."""

from uuid import UUID, uuid4

import psycopg
import pytest

from shared.platform.migrations.runner import migrate
from shared.platform.settings import DatabaseSettings
from tests.shared.platform.database.migrating import migrate_to, revision_before

_REVISION = "0027"
_MERCHANT = UUID("00000000-0000-7000-8000-000000000001")
_ACCOUNT = "insert into provider_accounts (application_id, method, adapter) values (%s, 'card', %s)"
_ACCOUNTS = {
    "none": (),
    "plutu": ("plutu",),
    "sandbox": ("sandbox",),
    "no longer plutu": ("plutu", "sandbox"),
}


def _fill(connection: psycopg.Connection[object]) -> None:
    connection.execute("insert into merchants (id, name) values (%s, 'Tripoli Coffee')", (_MERCHANT,))
    for name, adapters in _ACCOUNTS.items():
        application = uuid4()
        connection.execute(
            "insert into applications (id, merchant_id, name) values (%s, %s, %s)",
            (application, _MERCHANT, name),
        )
        for adapter in adapters:
            connection.execute(
                "update provider_accounts set replaced_at = now() where application_id = %s", (application,)
            )
            connection.execute(_ACCOUNT, (application, adapter))


def _modes(database: DatabaseSettings) -> dict[str, str]:
    with psycopg.connect(database.url) as connection:
        return dict(connection.execute("select name, mode from applications").fetchall())


def test_applications_with_a_plutu_account_become_live(empty_database: DatabaseSettings) -> None:
    before = revision_before(_REVISION)
    migrate_to(empty_database, before)
    with psycopg.connect(empty_database.url) as connection:
        _fill(connection)
    expected = {"none": "test", "plutu": "live", "sandbox": "test", "no longer plutu": "test"}
    for _ in range(2):  # an interrupted migration can be repeated
        migrate_to(empty_database, _REVISION)
        assert _modes(empty_database) == expected
        with psycopg.connect(empty_database.url) as connection:
            connection.execute("update alembic_version set version_num = %s", (before,))


def test_all_applications_of_production_become_live(empty_database: DatabaseSettings) -> None:
    """One without an account offered no method, and must not begin to accept test cards."""
    migrate_to(empty_database, revision_before(_REVISION))
    with psycopg.connect(empty_database.url) as connection:
        _fill(connection)
    migrate(empty_database.url, is_production=True)
    assert _modes(empty_database) == dict.fromkeys(_ACCOUNTS, "live")


def test_previous_version_makes_test_applications_and_no_account_for_them(
    empty_database: DatabaseSettings,
) -> None:
    migrate_to(empty_database, revision_before(_REVISION))
    with psycopg.connect(empty_database.url) as connection:
        _fill(connection)
    migrate_to(empty_database, _REVISION)
    with psycopg.connect(empty_database.url, autocommit=True) as connection:
        new = connection.execute(
            "insert into applications (merchant_id, name) values (%s, 'new') returning id", (_MERCHANT,)
        ).fetchone()
        assert new is not None
        with pytest.raises(psycopg.errors.CheckViolation, match="a test application has no provider account"):
            connection.execute(_ACCOUNT, (new[0], "plutu"))
        connection.execute(
            "update provider_accounts set replaced_at = now()"
            " where application_id = (select id from applications where name = 'plutu')"
        )
        connection.execute(
            "insert into provider_accounts (application_id, method, adapter)"
            " select id, 'card', 'plutu' from applications where name = 'plutu'"
        )
    assert _modes(empty_database)["new"] == "test"
