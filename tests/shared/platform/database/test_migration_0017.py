"""Revision 0017 on a database with members: each address gets one account, and nobody another's membership."""

from typing import Any

import psycopg
import pytest

from shared.platform.settings import DatabaseSettings
from tests.shared.platform.database.migrating import migrate_to, revision_before

_MERCHANT = "insert into merchants (name) values (%s) returning id"
_MEMBER = """
insert into members (merchant_id, email, role, password_hash, created_at, joined_at)
select id, %(email)s, %(role)s, %(hash)s, %(at)s, %(at)s from merchants where name = %(merchant)s returning id"""
_CREATED_BY_OPERATOR = """
insert into audit_log (merchant_id, actor, action, details, at)
select id, 'cli operator', 'member_created', jsonb_build_object('email', %(email)s::text), %(at)s
from merchants where name = %(merchant)s"""
_SESSION = (
    "insert into sessions (hash, person_id, expires_at) values (sha256(%s), %s, now() + interval '1 day')"
)
_MEMBERS = """
select merchants.name, m.joined_at is not null, m.password_hash, u.password_hash, u.email_verified_at is not null
from members as m join merchants on merchants.id = m.merchant_id left join users as u on u.id = m.user_id
where m.email = %s order by merchants.name"""


class OldDatabase:
    """A database before the revision, with members of the merchants A, B and C."""

    def __init__(self, database: DatabaseSettings) -> None:
        self.database = database
        migrate_to(database, revision_before("0017"))
        for name in "ABC":
            self.run(_MERCHANT, (name,))

    def add(
        self, merchant: str, hashed: str, at: str, role: str = "viewer", *, by_operator: bool = False
    ) -> Any:
        """Add a member mona@example.ly who joined in the year `at`."""
        values = {
            "merchant": merchant,
            "email": "mona@example.ly",
            "role": role,
            "hash": hashed,
            "at": f"{at}-01-01",
        }
        if by_operator:
            self.run(_CREATED_BY_OPERATOR, values)
        return self.run(_MEMBER, values)[0][0]

    def run(self, statement: str, values: Any = ()) -> list[Any]:
        with psycopg.connect(self.database.url) as connection:
            done = connection.execute(statement.encode(), values)
            return done.fetchall() if done.description else []

    def migrate(self) -> list[Any]:
        """Migrate, and return merchant, joined, copy of the hash, hash and verified of each membership."""
        migrate_to(self.database, "0017")
        return self.run(_MEMBERS, ("mona@example.ly",))


@pytest.fixture
def old(empty_database: DatabaseSettings) -> OldDatabase:
    return OldDatabase(empty_database)


def test_memberships_with_one_password_get_one_unverified_account(old: OldDatabase) -> None:
    old.add("A", "one", "2024")
    old.add("B", "one", "2025")
    assert old.migrate() == [("A", True, "one", "one", False), ("B", True, "one", "one", False)]
    assert old.run("select count(*) from users") == [(1,)]


def test_membership_with_another_password_must_be_accepted_again(old: OldDatabase) -> None:
    """Somebody else may have chosen it. The account has the password of who joined first; the other's sessions end."""
    kept, other = old.add("A", "one", "2024"), old.add("B", "two", "2025")
    for number, member in enumerate((kept, other)):
        old.run(_SESSION, (str(number).encode(), member))
    assert old.migrate() == [("A", True, "one", "one", False), ("B", False, None, None, False)]
    assert old.run("select person_id from sessions where expires_at > now()") == [(kept,)]
    logged = "select merchants.name, details from audit_log join merchants on merchants.id = merchant_id"
    assert old.run(f"{logged} where action = 'member_set_aside'") == [("B", {"email": "mona@example.ly"})]


def test_only_owner_of_a_merchant_keeps_the_password(old: OldDatabase) -> None:
    """Nobody could invite them again."""
    old.add("A", "one", "2024")
    old.add("B", "two", "2025", "owner")
    assert old.migrate() == [("A", False, None, None, False), ("B", True, "two", "two", False)]


def test_member_that_an_operator_created_keeps_the_password_and_is_verified(old: OldDatabase) -> None:
    old.add("A", "one", "2023", "owner")
    old.add("B", "two", "2024", by_operator=True)
    old.add("C", "two", "2025")
    assert old.migrate() == [
        ("A", False, None, None, False),
        ("B", True, "two", "two", True),
        ("C", True, "two", "two", True),
    ]


def test_member_who_was_invited_after_an_operators_was_removed_is_not_verified(old: OldDatabase) -> None:
    first = old.add("A", "one", "2023", by_operator=True)
    old.run("update members set removed_at = now() where id = %s", (first,))
    old.add("A", "two", "2024")
    assert old.migrate()[-1] == ("A", True, "two", "two", False)


def test_former_and_invited_members_get_no_account(old: OldDatabase) -> None:
    former = old.add("A", "one", "2024")
    old.run("update members set removed_at = now() where id = %s", (former,))
    old.run(
        "insert into members (merchant_id, email, role) select id, 'mona@example.ly', 'owner' from merchants"
    )
    old.migrate()
    assert old.run("select from users") == []
    assert old.run("select count(*) from members where user_id is null") == [(4,)]


def test_previous_version_reads_the_accounts_password_but_cannot_set_one(old: OldDatabase) -> None:
    """It may run until it is restarted. What it set would be another password than that of the account."""
    member = old.add("A", "one", "2024")
    old.migrate()
    copy = "select password_hash from members where id = %s"
    old.run("update users set password_hash = 'changed'")
    assert old.run(copy, (member,)) == [("changed",)]
    for statement in (
        "update members set password_hash = 'other' where id = %s",
        """insert into members (merchant_id, email, role, password_hash, joined_at)
           select merchant_id, 'new@example.ly', 'owner', 'other', now() from members where id = %s""",
    ):
        with pytest.raises(psycopg.errors.RaiseException, match="previous version"):
            old.run(statement, (member,))
    old.run("update members set role = 'developer', removed_at = now() where id = %s", (member,))
    assert old.run(copy, (member,)) == [("changed",)]


def test_interrupted_migration_can_be_repeated(old: OldDatabase) -> None:
    old.add("A", "one", "2024")
    old.add("B", "two", "2025")
    done = old.migrate()
    old.run("update alembic_version set version_num = %s", (revision_before("0017"),))
    assert old.migrate() == done
    assert old.run("select count(*) from audit_log") == [(1,)]
