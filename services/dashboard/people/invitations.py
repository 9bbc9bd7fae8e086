"""Invitations: a link that is valid once and for seven days, with which a new member chooses a password."""

from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.accounts.members import Member, accept_invitation, add_member, find_member, lock_merchant
from shared.domain.accounts.roles import Role
from shared.platform.database.pool import fetch_scalar
from shared.platform.errors import RefusedError
from shared.platform.tokens import hash_token, new_invitation_token

VALID_FOR_S = 7 * 24 * 3600
MAX_OPEN = 50
"""Invitations of a merchant that were not accepted yet."""
MAX_PER_DAY = 100
"""Links of a merchant within 24 hours, new ones for the same person included: each can be a mail to a stranger."""
_PURPOSE = "invitation"

_COUNT_OPEN = """
select count(*) from members where merchant_id = %s and removed_at is null and joined_at is null"""
# Removed members count too, otherwise one could invite and remove without end.
_COUNT_OF_A_DAY = """
select count(*) from members as m join one_time_codes as c on c.subject = m.id
where m.merchant_id = %s and c.purpose = %s and c.created_at > mizan_now() - interval '1 day'"""
_ISSUE = """
insert into one_time_codes (hash, purpose, subject, expires_at)
values (%s, %s, %s, mizan_now() + make_interval(secs => %s))"""
_LOCK = "select from members where id = %s for update"
_VOID = """
update one_time_codes set used_at = mizan_now() where purpose = %s and subject = %s and used_at is null"""
_FIND = """
select m.id, m.email, merchants.name from one_time_codes as c
join members as m on m.id = c.subject and m.removed_at is null and m.joined_at is null
join merchants on merchants.id = m.merchant_id
where c.hash = %s and c.purpose = %s and c.used_at is null and c.expires_at > mizan_now()"""
_USE = """
update one_time_codes set used_at = mizan_now()
where hash = %s and purpose = %s and used_at is null and expires_at > mizan_now() returning subject"""


class AlreadyJoinedError(RefusedError):
    def __init__(self) -> None:
        super().__init__("this member has joined already")


class TooManyOpenInvitationsError(RefusedError):
    def __init__(self) -> None:
        super().__init__(f"the merchant has {MAX_OPEN} open invitations")


class TooManyInvitationsError(RefusedError):
    def __init__(self) -> None:
        super().__init__(f"the merchant has made {MAX_PER_DAY} invitations within a day")


class InvitationExpiredError(Exception):
    """The invitation was used, replaced or has expired, or it never existed."""


def invite(connection: Connection[Any], merchant_id: UUID, email: str, role: Role) -> tuple[UUID, str]:
    """Add a member and return its id and the token of the link.

    Raises TooManyOpenInvitationsError, TooManyInvitationsError and what `add_member` raises.
    """
    _check_daily_limit(connection, merchant_id)
    if fetch_scalar(connection, _COUNT_OPEN, (merchant_id,)) >= MAX_OPEN:
        raise TooManyOpenInvitationsError
    member_id = add_member(connection, merchant_id, email, role, None)
    return member_id, _issue(connection, member_id)


def reissue_invitation(connection: Connection[Any], member: Member) -> str:
    """Return the token of a new link. The previous link stops working.

    Raises AlreadyJoinedError and TooManyInvitationsError.
    """
    if member.joined_at is not None:
        raise AlreadyJoinedError
    _check_daily_limit(connection, member.merchant_id)
    connection.execute(_LOCK, (member.id,))
    connection.execute(_VOID, (_PURPOSE, member.id))
    return _issue(connection, member.id)


def find_invitation(connection: Connection[Any], token: str) -> tuple[str, str]:
    """Return the email address and merchant name of the invited member. Raises InvitationExpiredError."""
    row = connection.execute(_FIND, (hash_token(token), _PURPOSE)).fetchone()
    if row is None:
        raise InvitationExpiredError
    return str(row[1]), str(row[2])


def redeem_invitation(connection: Connection[Any], token: str, password: str) -> Member:
    """Use the link and set the password. Return the member, who has joined.

    Raises InvitationExpiredError, also for the second of two people who use one link at the same time.
    """
    used = connection.execute(_USE, (hash_token(token), _PURPOSE)).fetchone()
    if used is None or not accept_invitation(connection, used[0], password):
        raise InvitationExpiredError
    joined = find_member(connection, used[0])
    assert joined is not None
    return joined


def _check_daily_limit(connection: Connection[Any], merchant_id: UUID) -> None:
    """Raise TooManyInvitationsError. Locks the merchant, so that invitations at the same moment are all counted."""
    lock_merchant(connection, merchant_id)
    if fetch_scalar(connection, _COUNT_OF_A_DAY, (merchant_id, _PURPOSE)) >= MAX_PER_DAY:
        raise TooManyInvitationsError


def _issue(connection: Connection[Any], member_id: UUID) -> str:
    token = new_invitation_token()
    connection.execute(_ISSUE, (hash_token(token), _PURPOSE, member_id, VALID_FOR_S))
    return token
