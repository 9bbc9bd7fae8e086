"""`mizan operator`: operators are created on the command line only."""

import json

import pytest

from shared.domain.accounts.operators import (
    change_operator_password,
    find_operator_by_email,
    find_operator_session,
)
from shared.domain.accounts.passwords import is_password
from shared.domain.accounts.sessions import start_session
from shared.platform.database.pool import Database
from tests.mizan.conftest import Mizan

_ANNA = ("--email", "anna@example.ly")


def test_create_prints_a_password_that_matches_the_stored_hash(run: Mizan, database: Database) -> None:
    made = json.loads(run("operator", "create", "--email", "Anna@Example.ly", "--json").stdout)
    assert made["email"] == "anna@example.ly"
    with database.cursor() as cursor:
        found = find_operator_by_email(cursor, made["email"])
    assert found is not None
    assert is_password(found.password_hash, made["password"])
    assert json.loads(run("operator", "list", "--json").stdout)["operators"][0]["email"] == "anna@example.ly"


def test_second_operator_with_the_same_email_is_refused(run: Mizan) -> None:
    run("operator", "create", *_ANNA)
    again = run("operator", "create", *_ANNA)
    assert again.exit_code == 1
    assert "already" in again.stderr


@pytest.mark.parametrize("command", ["remove", "reset-password"])
def test_removal_and_password_reset_end_existing_sessions(
    run: Mizan, database: Database, command: str
) -> None:
    run("operator", "create", *_ANNA)
    with database.transaction() as connection, connection.cursor() as cursor:
        found = find_operator_by_email(cursor, "anna@example.ly")
        assert found is not None
        token = start_session(connection, found.id, "", "")
    with database.cursor() as cursor:
        assert find_operator_session(cursor, token) is not None
        assert run("operator", command, *_ANNA).exit_code == 0
        assert find_operator_session(cursor, token) is None


def test_password_reset_during_a_change_of_the_password_wins(run: Mizan, database: Database) -> None:
    """Who has a session with the old password cannot replace the new one."""
    run("operator", "create", *_ANNA)
    with database.cursor() as cursor:
        verified = find_operator_by_email(cursor, "anna@example.ly")
    assert verified is not None
    new = json.loads(run("operator", "reset-password", *_ANNA, "--json").stdout)["password"]
    with database.transaction() as connection:
        assert change_operator_password(connection, verified, "seven small boats at sea", kept=b"") is None
        found = find_operator_by_email(connection.cursor(), "anna@example.ly")
    assert found is not None
    assert is_password(found.password_hash, new)


def test_unknown_operator_cannot_be_removed(run: Mizan) -> None:
    assert "no such operator" in run("operator", "remove", *_ANNA).stderr


def test_changes_of_operators_are_in_their_audit_log(run: Mizan, database: Database) -> None:
    run("operator", "create", *_ANNA)
    run("operator", "reset-password", *_ANNA)
    run("operator", "remove", *_ANNA)
    with database.cursor() as cursor:
        log = cursor.execute("select action, merchant_id from audit_log order by id").fetchall()
    assert log == [("operator_created", None), ("password_changed", None), ("operator_removed", None)]
