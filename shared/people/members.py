"""The members of a merchant, and their roles. At least one of those who can sign in is an owner."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor
from psycopg.errors import UniqueViolation

from shared.applications.errors import RefusedError
from shared.people.passwords import hash_password
from shared.people.roles import Role

_MOST_MEMBERSHIPS = 20
# Not what the standard allows but what is in use; mail servers have the last word.
_EMAIL = re.compile(r"[^\s@<>()\[\]\\,;:\"\x00-\x1f\x7f]{1,64}@[^\s@<>()\[\]\\,;:\"\x00-\x1f\x7f]{1,189}")


class EmailNotAllowedError(RefusedError):
    def __init__(self) -> None:
        super().__init__("this is no email address")


class MemberExistsError(RefusedError):
    def __init__(self) -> None:
        super().__init__("the merchant has a member with this email address already")


class MemberNotFoundError(RefusedError):
    def __init__(self) -> None:
        super().__init__("the merchant has no such member")


class LastOwnerError(RefusedError):
    def __init__(self) -> None:
        super().__init__("the merchant would have no owner left; make somebody else an owner first")


@dataclass(frozen=True, slots=True)
class Member:
    id: UUID
    merchant_id: UUID
    merchant_name: str
    email: str
    role: Role
    password_hash: str | None = field(repr=False)
    """None while the invitation is open."""
    created_at: datetime
    joined_at: datetime | None


MEMBER_COLUMNS = (
    "m.id, m.merchant_id, merchants.name, m.email, m.role, m.password_hash, m.created_at, m.joined_at"
)
_COLUMNS = f"{MEMBER_COLUMNS} from members as m join merchants on merchants.id = m.merchant_id"
_BY_EMAIL = f"""
select {_COLUMNS} where m.email = %s and m.removed_at is null and m.joined_at is not null
order by m.id limit {_MOST_MEMBERSHIPS}"""
_LIST = f"select {_COLUMNS} where m.merchant_id = %s and m.removed_at is null order by m.id"
_GET = f"select {_COLUMNS} where m.id = %s and m.removed_at is null"
_ADD = """
insert into members (merchant_id, email, role, password_hash, joined_at)
values (%(merchant)s, %(email)s, %(role)s, %(hash)s, case when %(hash)s::text is null then null else mizan_now() end)
returning id"""
_LOCK_MERCHANT = "select from merchants where id = %s for no key update"
_OTHER_OWNERS = """
select from members where merchant_id = %s and id <> %s and role = 'owner' and removed_at is null
  and joined_at is not null limit 1"""
_SET_ROLE = "update members set role = %s where id = %s and removed_at is null"
_REMOVE = "update members set removed_at = mizan_now() where id = %s and removed_at is null"
_LET_IN = """
update members set password_hash = %s, joined_at = coalesce(joined_at, mizan_now())
where id = %s and removed_at is null"""


def check_email(text: str) -> str:
    """The address in small letters, as we keep it."""
    email = text.strip().lower()
    if not _EMAIL.fullmatch(email) or not email.isprintable():
        raise EmailNotAllowedError
    return email


def add_member(
    connection: Connection[Any], merchant_id: UUID, email: str, role: Role, password: str | None
) -> UUID:
    """Without a password they are invited, and cannot sign in before they have chosen one."""
    values = {
        "merchant": merchant_id,
        "email": check_email(email),
        "role": role,
        "hash": None if password is None else hash_password(password),
    }
    try:
        with connection.transaction():
            row = connection.execute(_ADD, values).fetchone()
    except UniqueViolation:
        raise MemberExistsError from None
    assert row is not None
    return UUID(str(row[0]))


def find_by_email(cursor: Cursor[Any], email: str) -> list[Member]:
    """All memberships of whoever has this address; those who have not joined yet cannot sign in."""
    return [member_in(row) for row in cursor.execute(_BY_EMAIL, (email.strip().lower(),))]


def list_members(connection: Connection[Any], merchant_id: UUID) -> list[Member]:
    """Those who joined first, first; with those who are invited."""
    return [member_in(row) for row in connection.execute(_LIST, (merchant_id,))]


def find_member(connection: Connection[Any], member_id: UUID) -> Member | None:
    row = connection.execute(_GET, (member_id,)).fetchone()
    return None if row is None else member_in(row)


def get_member(connection: Connection[Any], merchant_id: UUID, member_id: UUID) -> Member:
    """Of this merchant: another's members do not exist."""
    found = find_member(connection, member_id)
    if found is None or found.merchant_id != merchant_id:
        raise MemberNotFoundError
    return found


def change_role(connection: Connection[Any], member: Member, role: Role) -> None:
    if role is not Role.OWNER:
        _keep_an_owner(connection, member)
    connection.execute(_SET_ROLE, (role, member.id))


def remove_member(connection: Connection[Any], member: Member) -> None:
    """Their sessions end with it: a session counts while its member is there."""
    _keep_an_owner(connection, member)
    connection.execute(_REMOVE, (member.id,))


def set_password(connection: Connection[Any], member_id: UUID, password: str) -> None:
    connection.execute(_LET_IN, (hash_password(password), member_id))


def _keep_an_owner(connection: Connection[Any], member: Member) -> None:
    """Under the merchant's lock: two owners cannot remove each other."""
    connection.execute(_LOCK_MERCHANT, (member.merchant_id,))
    if connection.execute(_OTHER_OWNERS, (member.merchant_id, member.id)).fetchone() is None:
        raise LastOwnerError


def member_in(row: tuple[Any, ...]) -> Member:
    """Reads a row of MEMBER_COLUMNS."""
    member_id, merchant_id, merchant_name, email, role, hashed, created_at, joined_at = row
    return Member(member_id, merchant_id, merchant_name, email, Role(role), hashed, created_at, joined_at)
