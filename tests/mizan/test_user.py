"""`mizan user`: members created on the command line can sign in to the dashboard."""

import json

import pytest
from click.testing import Result

from shared.domain.accounts.members import Member, find_members_by_email, invite_member
from shared.domain.accounts.passwords import is_password
from shared.domain.accounts.roles import Role
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
    assert is_password(_hash(member), made["password"])


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
    assert (is_password(_hash(member), old), is_password(_hash(member), new)) == (False, True)


def test_existing_account_gets_the_membership_and_keeps_its_password(run: Mizan, database: Database) -> None:
    password = json.loads(_create(run, "mona@example.ly").stdout)["password"]
    second = _create(run, "Mona@Example.ly", "Benghazi Books")
    assert json.loads(second.stdout) == {"email": "mona@example.ly", "password": None}
    with database.cursor() as cursor:
        members = find_members_by_email(cursor, "mona@example.ly")
    assert [member.merchant_name for member in members] == ["Tripoli Coffee", "Benghazi Books"]
    assert all(is_password(_hash(member), password) for member in members)
    shown = run("user", "create", "--email", "mona@example.ly", "--role", "viewer", "--merchant", "Third")
    assert "its password is unchanged" in shown.stdout


def test_unverified_account_gets_a_new_password_with_the_membership(run: Mizan, database: Database) -> None:
    """An owner who saw the invitation link may have chosen the old one."""
    old = json.loads(_create(run, "mona@example.ly").stdout)["password"]
    with database.transaction() as connection:
        connection.execute("update users set email_verified_at = null")
        (member,) = find_members_by_email(connection.cursor(), "mona@example.ly")
        token = start_session(connection, member.id, "127.0.0.1", "a browser")
    new = json.loads(_create(run, "mona@example.ly", "Benghazi Books").stdout)["password"]
    with database.cursor() as cursor:
        first, _second = find_members_by_email(cursor, "mona@example.ly")
        assert find_session(cursor, token) is None
    assert first.user is not None
    assert first.user.is_verified
    assert (is_password(_hash(first), old), is_password(_hash(first), new)) == (False, True)


def test_password_reset_is_for_all_merchants_of_the_address(run: Mizan, database: Database) -> None:
    _create(run, "mona@example.ly")
    _create(run, "mona@example.ly", "Benghazi Books")
    with database.transaction() as connection:
        members = find_members_by_email(connection.cursor(), "mona@example.ly")
        tokens = [start_session(connection, member.id, "127.0.0.1", "a browser") for member in members]
    done = run("user", "reset-password", "--email", "mona@example.ly", *_COFFEE)
    assert "for all its merchants" in done.stdout
    with database.cursor() as cursor:
        assert [find_session(cursor, token) for token in tokens] == [None, None]
        logged = "select merchant_id from audit_log where action = 'password_changed' order by id"
        assert cursor.execute(logged).fetchall() == [(member.merchant_id,) for member in members]


def test_password_reset_lets_an_invited_member_join(run: Mizan, database: Database) -> None:
    _create(run, "owner@example.ly")
    with database.transaction() as connection:
        merchant = connection.execute("select id from merchants").fetchone()
        assert merchant is not None
        invite_member(connection, merchant[0], "mona@example.ly", Role.VIEWER)
    done = run("user", "reset-password", "--email", "mona@example.ly", *_COFFEE, "--json")
    with database.cursor() as cursor:
        (member,) = find_members_by_email(cursor, "mona@example.ly")
    assert is_password(_hash(member), json.loads(done.stdout)["password"])


def test_audit_log_has_the_new_member_without_the_password(run: Mizan, database: Database) -> None:
    made = json.loads(_create(run, "a@example.ly").stdout)
    with database.cursor() as cursor:
        ((actor, action, details),) = cursor.execute(
            "select actor, action, details::text from audit_log"
        ).fetchall()
    assert actor.startswith("cli operator ")
    assert (action, made["password"] in details) == ("member_created", False)


def _create(run: Mizan, email: str, merchant: str = "Tripoli Coffee") -> Result:
    return run("user", "create", "--email", email, "--role", "owner", "--merchant", merchant, "--json")


def _hash(member: Member) -> str | None:
    return member.user.password_hash if member.user else None
