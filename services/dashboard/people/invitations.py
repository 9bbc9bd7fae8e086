"""Invitations: a link that is valid once and for seven days, with which an invited member joins."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.accounts.joining import JoinStep, find_step, join_with_account, join_with_new_password
from shared.domain.accounts.members import (
    Member,
    MemberNotFoundError,
    find_member,
    invite_member,
    lock_merchant,
    lock_open_invitation,
)
from shared.domain.accounts.roles import Role
from shared.domain.accounts.users import User
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
insert into one_time_codes (hash, purpose, subject, is_emailed, expires_at)
values (%s, %s, %s, %s, mizan_now() + make_interval(secs => %s))"""
_VOID = """
update one_time_codes set used_at = mizan_now() where purpose = %s and subject = %s and used_at is null"""
_MARK_SHOWN = "update one_time_codes set is_emailed = false where hash = %s and purpose = %s"
_FIND = """
select m.id, c.is_emailed from one_time_codes as c
join members as m on m.id = c.subject and m.removed_at is null and m.joined_at is null
where c.hash = %s and c.purpose = %s and c.used_at is null and c.expires_at > mizan_now()"""
_USE = """
update one_time_codes set used_at = mizan_now()
where hash = %s and purpose = %s and used_at is null and expires_at > mizan_now() and is_emailed = %s"""


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


@dataclass(frozen=True, slots=True)
class Invitation:
    """An open invitation, and what the person has to do to accept it."""

    member: Member
    is_emailed: bool
    """It was sent by email and shown to nobody else: whoever has it owns the address."""
    step: JoinStep


def invite(
    connection: Connection[Any], merchant_id: UUID, email: str, role: Role, *, is_emailed: bool = False
) -> tuple[UUID, str]:
    """Add a member and return its id and the token of the link. `is_emailed`: the link will be shown to nobody.

    Raises TooManyOpenInvitationsError, TooManyInvitationsError and what `invite_member` raises.
    """
    _check_daily_limit(connection, merchant_id)
    if fetch_scalar(connection, _COUNT_OPEN, (merchant_id,)) >= MAX_OPEN:
        raise TooManyOpenInvitationsError
    member_id = invite_member(connection, merchant_id, email, role)
    return member_id, _issue(connection, member_id, is_emailed=is_emailed)


def reissue_invitation(connection: Connection[Any], member: Member, *, is_emailed: bool = False) -> str:
    """Return the token of a new link. The previous link stops working.

    Raises AlreadyJoinedError and TooManyInvitationsError.
    """
    if member.joined_at is not None:
        raise AlreadyJoinedError
    _check_daily_limit(connection, member.merchant_id)
    if not lock_open_invitation(connection, member.id):
        raise AlreadyJoinedError
    connection.execute(_VOID, (_PURPOSE, member.id))
    return _issue(connection, member.id, is_emailed=is_emailed)


def mark_shown(connection: Connection[Any], token: str) -> None:
    """Note that the link was not only emailed. Call it before the link is shown to somebody else."""
    connection.execute(_MARK_SHOWN, (hash_token(token), _PURPOSE))


def find_invitation(connection: Connection[Any], token: str) -> Invitation:
    """Return the invitation of this link. Raises InvitationExpiredError."""
    row = connection.execute(_FIND, (hash_token(token), _PURPOSE)).fetchone()
    member = None if row is None else find_member(connection, row[0])
    if row is None or member is None:
        raise InvitationExpiredError
    return Invitation(member, row[1], find_step(connection, member.email, is_proven=row[1]))


def accept_with_new_password(
    connection: Connection[Any], token: str, invitation: Invitation, password: str
) -> Member:
    """Use the link, and set the password of the address's account. Return the member, who has joined.

    Raises InvitationExpiredError, also for the second of two people who use one link at the same time, and
    JoinStepChangedError; roll back then.
    """
    invited = invitation.member
    try:
        join_with_new_password(
            connection, invited.id, invited.email, password, is_proven=invitation.is_emailed
        )
    except MemberNotFoundError:
        raise InvitationExpiredError from None
    return _use_link(connection, token, invitation)


def accept_with_account(
    connection: Connection[Any], token: str, invitation: Invitation, user: User
) -> Member:
    """Use the link with the account whose password was verified. Return and raise as `accept_with_new_password`."""
    try:
        join_with_account(connection, invitation.member.id, user)
    except MemberNotFoundError:
        raise InvitationExpiredError from None
    return _use_link(connection, token, invitation)


def _use_link(connection: Connection[Any], token: str, invitation: Invitation) -> Member:
    """Call it after the member was locked: `reissue_invitation` locks in this order, too."""
    if not connection.execute(_USE, (hash_token(token), _PURPOSE, invitation.is_emailed)).rowcount:
        raise InvitationExpiredError
    joined = find_member(connection, invitation.member.id)
    assert joined is not None, "it is locked"
    return joined


def _check_daily_limit(connection: Connection[Any], merchant_id: UUID) -> None:
    """Raise TooManyInvitationsError. Locks the merchant, so that invitations at the same moment are all counted."""
    lock_merchant(connection, merchant_id)
    if fetch_scalar(connection, _COUNT_OF_A_DAY, (merchant_id, _PURPOSE)) >= MAX_PER_DAY:
        raise TooManyInvitationsError


def _issue(connection: Connection[Any], member_id: UUID, *, is_emailed: bool) -> str:
    token = new_invitation_token()
    connection.execute(_ISSUE, (hash_token(token), _PURPOSE, member_id, is_emailed, VALID_FOR_S))
    return token
