"""How an invited member joins with an account: with a new password, or with the account that the address already has.

An invitation proves that somebody owns the address only if it was sent by email and shown to nobody else. Otherwise the
owner who invited could open the link. Such a link never touches an account that is in use, and an account that is not
verified never joins a second merchant. What an operator does on the command line counts as proven.
"""

from enum import StrEnum
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.accounts.members import (
    Member,
    MemberNotFoundError,
    check_email,
    invite_member,
    lock_open_invitation,
    set_joined,
)
from shared.domain.accounts.passwords import hash_password
from shared.domain.accounts.roles import Role
from shared.domain.accounts.users import (
    User,
    create_or_lock_user,
    find_user,
    is_member_anywhere,
    lock_unchanged_password,
    lock_user,
    reset_password,
)
from shared.platform.errors import RefusedError


class JoinStep(StrEnum):
    """What an invited person has to do next."""

    CHOOSE_PASSWORD = "choose_password"  # noqa: S105  the name of a step
    """For a new account, or instead of a password that anybody may have chosen."""
    SIGN_IN = "sign_in"
    """With the account of the address."""
    ASK_FOR_EMAIL = "ask_for_email"
    """The account of the address is not verified: only an emailed invitation helps."""


class JoinStepChangedError(RefusedError):
    def __init__(self) -> None:
        super().__init__("the account of this email address was changed at this moment; try again")


def decide_step(user: User | None, *, is_member: bool, is_proven: bool) -> JoinStep:
    """Return what has to be done to join with the account of an address.

    `is_member`: the account has a membership already. Without one it has nothing to protect, and whoever lost its
    password must be able to start again. `is_proven`: the link was emailed, or an operator vouches for the address.
    """
    if user is None:
        return JoinStep.CHOOSE_PASSWORD
    if user.is_verified:
        return JoinStep.CHOOSE_PASSWORD if is_proven and not is_member else JoinStep.SIGN_IN
    return JoinStep.CHOOSE_PASSWORD if is_proven or not is_member else JoinStep.ASK_FOR_EMAIL


def find_step(connection: Connection[Any], email: str, *, is_proven: bool) -> JoinStep:
    """Return what somebody who was invited with this address has to do next."""
    return _step(connection, find_user(connection, email), is_proven=is_proven)


def join_with_new_password(
    connection: Connection[Any], member_id: UUID, email: str, password: str, *, is_proven: bool
) -> None:
    """Set the password of the address's account, which may be new, and join. All its sessions end.

    Raises MemberNotFoundError if there is no open invitation, and JoinStepChangedError if the account must be signed in
    to meanwhile; roll back then.
    """
    hashed = hash_password(password)
    if not lock_open_invitation(connection, member_id):
        raise MemberNotFoundError
    user, is_new = create_or_lock_user(connection, email, hashed, is_verified=is_proven)
    if not is_new:
        if _step(connection, user, is_proven=is_proven) is not JoinStep.CHOOSE_PASSWORD:
            raise JoinStepChangedError
        user = reset_password(connection, user, hashed, is_verified=is_proven)
    set_joined(connection, member_id, user)


def join_with_account(connection: Connection[Any], member_id: UUID, user: User) -> None:
    """Join with an account whose password was verified.

    Raises MemberNotFoundError if there is no open invitation, and JoinStepChangedError if the password has changed
    meanwhile or the account is not verified; roll back then.
    """
    if not lock_open_invitation(connection, member_id):
        raise MemberNotFoundError
    if not user.is_verified or not lock_unchanged_password(connection, user):
        raise JoinStepChangedError
    set_joined(connection, member_id, user)


def add_member(connection: Connection[Any], merchant_id: UUID, email: str, role: Role, password: str) -> bool:
    """Add a member for an operator, who vouches for the address. Return whether `password` is the account's now.

    A verified account that is in use keeps its own password. Raises InvalidEmailError, MemberExistsError and
    JoinStepChangedError.
    """
    member_id = invite_member(connection, merchant_id, email, role)
    user = lock_user(connection, check_email(email))
    if user is not None and _step(connection, user, is_proven=True) is JoinStep.SIGN_IN:
        set_joined(connection, member_id, user)
        return False
    join_with_new_password(connection, member_id, check_email(email), password, is_proven=True)
    return True


def reset_member_password(connection: Connection[Any], member: Member, password: str) -> None:
    """Reset the password of a member's account for an operator, who vouches for the address. All its sessions end.

    An invited member joins. Raises MemberNotFoundError if they have joined or were removed meanwhile.
    """
    hashed = hash_password(password)
    if member.joined_at is None and not lock_open_invitation(connection, member.id):
        raise MemberNotFoundError
    user, is_new = create_or_lock_user(connection, member.email, hashed, is_verified=True)
    if not is_new:
        user = reset_password(connection, user, hashed, is_verified=True)
    if member.joined_at is None:
        set_joined(connection, member.id, user)


def _step(connection: Connection[Any], user: User | None, *, is_proven: bool) -> JoinStep:
    is_member = user is not None and is_member_anywhere(connection, user)
    return decide_step(user, is_member=is_member, is_proven=is_proven)
