"""The members of a merchant and their roles. At least one member who has joined is an owner.

A member belongs to one merchant; somebody who works for several merchants has one account (users.py) with several
memberships.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor
from psycopg.errors import UniqueViolation

from shared.domain.accounts.roles import Role
from shared.domain.accounts.users import USER_COLUMNS, User
from shared.platform.errors import RefusedError

_MAX_MEMBERSHIPS = 20
# Addresses in common use, not all that the standard allows. Equals sign and question mark are left out because a mail's
# header could read them as an encoding.
_EMAIL = re.compile(r"[^\s@<>()\[\]\\,;:\"=?\x00-\x1f\x7f]{1,64}@[^\s@<>()\[\]\\,;:\"=?\x00-\x1f\x7f]{1,189}")


class InvalidEmailError(RefusedError):
    def __init__(self) -> None:
        super().__init__("this is not an email address")


class MemberExistsError(RefusedError):
    def __init__(self) -> None:
        super().__init__("the merchant already has a member with this email address")


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
    created_at: datetime
    joined_at: datetime | None
    user: User | None
    """None while the invitation is open."""


MEMBER_COLUMNS = (
    f"m.id, m.merchant_id, merchants.name, m.email, m.role, m.created_at, m.joined_at, {USER_COLUMNS}"
)
_COLUMNS = f"""
{MEMBER_COLUMNS} from members as m join merchants on merchants.id = m.merchant_id
left join users as u on u.id = m.user_id"""
_BY_EMAIL = f"""
select {_COLUMNS} where u.email = %s and m.removed_at is null and m.joined_at is not null
order by m.id limit {_MAX_MEMBERSHIPS}"""
# The latest membership of each merchant, if it is over or has not begun.
_INACTIVE = """
select id, merchant_id, removed_at is not null from (
    select distinct on (merchant_id) id, merchant_id, removed_at, joined_at from members where email = %s
    order by merchant_id, id desc) as latest
where removed_at is not null or joined_at is null
order by id desc limit 20"""
_LIST = f"select {_COLUMNS} where m.merchant_id = %s and m.removed_at is null order by m.id"
_GET = f"select {_COLUMNS} where m.id = %s and m.removed_at is null"
_INVITE = "insert into members (merchant_id, email, role) values (%s, %s, %s) returning id"
_LOCK_MERCHANT = "select from merchants where id = %s for no key update"
_OTHER_OWNERS = """
select from members where merchant_id = %s and id <> %s and role = 'owner' and removed_at is null
  and joined_at is not null limit 1"""
_SET_ROLE = "update members set role = %s where id = %s and removed_at is null"
_REMOVE = "update members set removed_at = mizan_now() where id = %s and removed_at is null"
_LOCK_INVITED = """
select from members where id = %s and removed_at is null and joined_at is null for no key update"""
_JOIN = "update members set user_id = %s, joined_at = mizan_now() where id = %s"


def check_email(text: str) -> str:
    """Return the address in lower case, as it is stored. Raises InvalidEmailError."""
    email = text.strip().lower()
    if not _EMAIL.fullmatch(email) or not email.isprintable():
        raise InvalidEmailError
    return email


def invite_member(connection: Connection[Any], merchant_id: UUID, email: str, role: Role) -> UUID:
    """Add a member who has not joined yet, and return its id. Raises InvalidEmailError and MemberExistsError."""
    email = check_email(email)
    try:
        with connection.transaction():
            row = connection.execute(_INVITE, (merchant_id, email, role)).fetchone()
    except UniqueViolation:
        raise MemberExistsError from None
    assert row is not None
    return UUID(str(row[0]))


def find_members_by_email(cursor: Cursor[Any], email: str) -> list[Member]:
    """Return the memberships of the account with this address (as `check_email` returns it), oldest first."""
    return [member_from_row(row) for row in cursor.execute(_BY_EMAIL, (email,))]


def find_inactive_members(cursor: Cursor[Any], email: str) -> list[tuple[UUID, UUID, bool]]:
    """Return the id, merchant id and whether they were removed of members who were removed or have not joined yet."""
    return cursor.execute(_INACTIVE, (email,)).fetchall()


def list_members(connection: Connection[Any], merchant_id: UUID) -> list[Member]:
    """Return the members and the invited, oldest first."""
    return [member_from_row(row) for row in connection.execute(_LIST, (merchant_id,))]


def find_member(connection: Connection[Any], member_id: UUID) -> Member | None:
    row = connection.execute(_GET, (member_id,)).fetchone()
    return None if row is None else member_from_row(row)


def get_member(connection: Connection[Any], merchant_id: UUID, member_id: UUID) -> Member:
    """Return a member of this merchant. Raises MemberNotFoundError, also for another merchant's member."""
    found = find_member(connection, member_id)
    if found is None or found.merchant_id != merchant_id:
        raise MemberNotFoundError
    return found


def change_role(connection: Connection[Any], member: Member, role: Role) -> None:
    if role is not Role.OWNER:
        _check_other_owner(connection, member)
    connection.execute(_SET_ROLE, (role, member.id))


def remove_member(connection: Connection[Any], member: Member) -> None:
    """Remove a member; their sessions end with it. Raises LastOwnerError."""
    _check_other_owner(connection, member)
    connection.execute(_REMOVE, (member.id,))


def lock_open_invitation(connection: Connection[Any], member_id: UUID) -> bool:
    """Lock an invited member. Return False if they have joined or were removed."""
    return connection.execute(_LOCK_INVITED, (member_id,)).rowcount > 0


def set_joined(connection: Connection[Any], member_id: UUID, user: User) -> None:
    """Make an invited member, whom `lock_open_invitation` has locked, a member with this account."""
    connection.execute(_JOIN, (user.id, member_id))


def lock_merchant(connection: Connection[Any], merchant_id: UUID) -> None:
    """Let changes to the members of a merchant take turns, until the transaction ends."""
    connection.execute(_LOCK_MERCHANT, (merchant_id,))


def _check_other_owner(connection: Connection[Any], member: Member) -> None:
    """Raise LastOwnerError if there is no other owner. Locks the merchant, so two owners cannot remove each other."""
    lock_merchant(connection, member.merchant_id)
    if connection.execute(_OTHER_OWNERS, (member.merchant_id, member.id)).fetchone() is None:
        raise LastOwnerError


def member_from_row(row: tuple[Any, ...]) -> Member:
    """Read a row of MEMBER_COLUMNS."""
    member_id, merchant_id, merchant_name, email, role, created_at, joined_at, *account = row
    user = None if account[0] is None else User(*account)
    return Member(member_id, merchant_id, merchant_name, email, Role(role), created_at, joined_at, user)
