"""Demo data in the database: found, removed, and not confused with real data."""

from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from cryptography.fernet import Fernet

from mizan.__main__ import main
from shared.domain.accounts.members import invite_member
from shared.domain.accounts.roles import Role
from shared.domain.applications.merchants import create_merchant
from shared.platform.database.pool import Database
from shared.platform.production.demo_data import (
    MERCHANT,
    OWNER,
    DemoDataCheck,
    DemoDataError,
    find_demo_data,
    find_demo_data_at_start,
)
from shared.platform.settings import DatabaseSettings
from tests.shared.platform.production.conftest import GOOD


def _found(database: Database) -> str | None:
    with database.cursor() as cursor:
        return find_demo_data(cursor)


@pytest.fixture
def demo(database_settings: DatabaseSettings, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a database that `mizan demo` has filled."""
    environment = {
        "DATABASE_URL": database_settings.url,
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
        "MIZAN_SECRET_KEYS": Fernet.generate_key().decode(),
        "WEBHOOK_ALLOW_PRIVATE": "true",
        "STACK_DIR": str(tmp_path),
    }
    words = ["demo", "--file", str(tmp_path / "demo.json"), "--webhook-url", "http://127.0.0.1:1/webhooks"]
    made = CliRunner().invoke(main, words, env=environment, catch_exceptions=False)
    assert made.exit_code == 0, made.stderr
    return environment


def test_new_database_has_no_demo_data(database: Database) -> None:
    assert _found(database) is None


def test_demo_data_is_found_and_can_be_removed(demo: dict[str, str], database: Database) -> None:
    """Also with a production environment in which no service would start; every removal is in the audit log."""
    found = _found(database)
    assert found is not None
    for word in ("an operator", "members", "API keys and tokens", "mizan remove-demo"):
        assert word in found
    production = {**demo, "WEBHOOK_ALLOW_PRIVATE": "false", "MIZAN_ENV": "production"}
    assert CliRunner().invoke(main, ["migrate"], env=production).exit_code == 78
    removed = CliRunner().invoke(main, ["remove-demo"], env=production, catch_exceptions=False)
    assert (removed.exit_code, removed.stdout) == (0, "the demo is disabled\n")
    assert _found(database) is None
    with database.cursor() as cursor:
        left = cursor.execute(
            """select (select count(*) from operators where removed_at is null),
                      (select count(*) from members where removed_at is null),
                      (select count(*) from credentials where revoked_at is null),
                      (select count(*) from applications where webhook_url is not null)"""
        ).fetchone()
        log = cursor.execute("select action from audit_log").fetchall()
    assert left == (0, 0, 0, 0)
    assert {"operator_removed", "member_removed", "credential_revoked", "webhook_url_removed"} <= {
        action for (action,) in log
    }
    again = CliRunner().invoke(main, ["remove-demo"], env=production)
    assert (again.exit_code, again.stdout) == (0, "there is no demo in this database\n")


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("update operators set removed_at = now()", "(members, API keys and tokens)"),
        ("update members set removed_at = now()", "(an operator, API keys and tokens)"),
        ("update credentials set revoked_at = now()", "(an operator, members)"),
    ],
)
def test_each_kind_of_demo_data_is_found_alone(
    demo: dict[str, str], database: Database, statement: str, left: str
) -> None:
    with database.transaction() as connection:
        connection.execute(statement.encode())
    assert left in (_found(database) or "")


def test_members_and_merchants_with_demo_names_are_not_demo_data(database: Database) -> None:
    """Otherwise a merchant could stop production from starting by inviting the demo's email address."""
    with database.transaction() as connection:
        invite_member(connection, create_merchant(connection, "Tripoli Coffee"), OWNER, Role.VIEWER)
        invite_member(connection, create_merchant(connection, MERCHANT), "anna@example.ly", Role.OWNER)
    assert _found(database) is None


def test_readiness_checks_until_the_database_was_clean_once(demo: dict[str, str], database: Database) -> None:
    check = DemoDataCheck(database).check
    with pytest.raises(DemoDataError, match="mizan remove-demo"):
        check()
    CliRunner().invoke(main, ["remove-demo"], env=demo)
    check()
    with database.transaction() as connection:
        connection.execute("update operators set removed_at = null")
    check()


def test_unavailable_or_empty_database_does_not_stop_the_start(
    database_settings: DatabaseSettings,
) -> None:
    away = DatabaseSettings(GOOD["DATABASE_URL"], 1, 1, 1.0, 1)
    assert find_demo_data_at_start(away) is None
    with psycopg.connect(database_settings.url, autocommit=True) as connection:
        connection.execute("drop table operators cascade")
    assert find_demo_data_at_start(database_settings) is None
