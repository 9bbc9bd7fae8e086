"""`mizan user`: members created on the command line can sign in to the dashboard."""

import json

import pytest
from click.testing import Result

from shared.domain.accounts.members import find_members_by_email
from shared.domain.accounts.passwords import matching_hashes
from shared.domain.accounts.sessions import find_session, start_session
from shared.platform.database.pool import Database
from tests.mizan.conftest import Mizan

_COFFEE = ("--merchant", "Tripoli Coffee")


def test_create_prints_a_password_that_matches_the_stored_hash(run: Mizan, database: Database) -> None:
    made = json.loads(_create(run, "Owner@Example.ly").stdout)
    assert set(made) == {"email", "password"}
    with database.cursor() as cursor:
        (member,) = find_members_by_email(cursor, made["email"])
    assert (member.email, member.role, member.merchant_name) == (
        "owner@example.ly",
        "owner",
        "Tripoli Coffee",
    )
    assert matching_hashes([member.password_hash or ""], made["password"])


def test_member_is_added_to_the_existing_merchant_of_that_name(run: Mizan, database: Database) -> None:
    _create(run, "a@example.ly")
    _create(run, "b@example.ly")
    with database.cursor() as cursor:
        assert cursor.execute("select count(*) from merchants").fetchone() == (1,)
    listed = json.loads(run("user", "list", *_COFFEE, "--json").stdout)["users"]
    assert [row["email"] for row in listed] == ["a@example.ly", "b@example.ly"]


def test_refused_commands_print_the_reason(run: Mizan) -> None:
    _create(run, "a@example.ly")
    assert "already has a member with this email address" in _create(run, "A@example.ly").output
    assert "this is not an email address" in _create(run, "nobody").output
    assert "there is no merchant Nobody" in run("user", "list", "--merchant", "Nobody").output
    unknown = run("user", "reset-password", "--email", "x@example.ly", *_COFFEE)
    assert (unknown.exit_code, "the merchant has no such member" in unknown.output) == (1, True)


@pytest.mark.parametrize("role", ["boss", "Owner", ""])
def test_unknown_role_is_refused(run: Mizan, role: str) -> None:
    done = run("user", "create", "--email", "a@example.ly", "--role", role, *_COFFEE)
    assert done.exit_code == 2


def test_password_reset_ends_existing_sessions(run: Mizan, database: Database) -> None:
    old = json.loads(_create(run, "a@example.ly").stdout)["password"]
    with database.cursor() as cursor:
        (member,) = find_members_by_email(cursor, "a@example.ly")
    with database.transaction() as connection:
        token = start_session(connection, member.id, "127.0.0.1", "a browser")
    done = run("user", "reset-password", "--email", "a@example.ly", *_COFFEE, "--json")
    new = json.loads(done.stdout)["password"]
    with database.cursor() as cursor:
        (member,) = find_members_by_email(cursor, "a@example.ly")
        assert find_session(cursor, token) is None
    hashes = [member.password_hash or ""]
    assert (matching_hashes(hashes, old), matching_hashes(hashes, new)) == ([], hashes)


def test_audit_log_has_the_new_member_without_the_password(run: Mizan, database: Database) -> None:
    made = json.loads(_create(run, "a@example.ly").stdout)
    with database.cursor() as cursor:
        ((actor, action, details),) = cursor.execute(
            "select actor, action, details::text from audit_log"
        ).fetchall()
    assert actor.startswith("cli operator ")
    assert (action, made["password"] in details) == ("member_created", False)


def _create(run: Mizan, email: str) -> Result:
    return run("user", "create", "--email", email, "--role", "owner", *_COFFEE, "--json")
