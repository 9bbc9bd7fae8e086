"""User accounts of the dashboard: one for each email address, with one password for all its memberships.

An account is verified once its person has accepted an emailed invitation, or an operator has vouched for the address.
Until then anybody who saw an invitation link may have chosen the password.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.accounts.passwords import hash_password

_NO_SESSION = b""


@dataclass(frozen=True, slots=True)
class User:
    id: UUID
    email: str
    password_hash: str = field(repr=False)
    email_verified_at: datetime | None

    @property
    def is_verified(self) -> bool:
        return self.email_verified_at is not None


USER_COLUMNS = "u.id, u.email, u.password_hash, u.email_verified_at"
_FIND = f"select {USER_COLUMNS} from users as u where u.email = %s"
_LOCK = f"{_FIND} for no key update"
_UNCHANGED = "select from users where id = %s and password_hash = %s for no key update"
_IS_MEMBER = "select from members where user_id = %s and removed_at is null and joined_at is not null limit 1"
_CREATE = f"""
insert into users as u (email, password_hash, email_verified_at)
values (%(email)s, %(hash)s, case when %(is_verified)s then mizan_now() end)
on conflict (email) do nothing returning {USER_COLUMNS}"""
_SET_HASH = "update users set password_hash = %s where id = %s and password_hash = %s"
_RESET = f"""
update users as u set password_hash = %(hash)s,
    email_verified_at = coalesce(email_verified_at, case when %(is_verified)s then mizan_now() end)
where id = %(id)s returning {USER_COLUMNS}"""
_END_SESSIONS = """
update sessions set expires_at = mizan_now()
where person_id in (select id from members where user_id = %s) and hash <> %s and expires_at > mizan_now()"""


def find_user(connection: Connection[Any], email: str) -> User | None:
    """Find the account of an address as `check_email` returns it."""
    row = connection.execute(_FIND, (email,)).fetchone()
    return None if row is None else User(*row)


def lock_user(connection: Connection[Any], email: str) -> User | None:
    """Find an account, and let changes of its password and its joining take turns until the transaction ends."""
    row = connection.execute(_LOCK, (email,)).fetchone()
    return None if row is None else User(*row)


def is_member_anywhere(connection: Connection[Any], user: User) -> bool:
    """Return whether the account has a membership. Without one nobody can sign in with it."""
    return connection.execute(_IS_MEMBER, (user.id,)).fetchone() is not None


def lock_unchanged_password(connection: Connection[Any], user: User) -> bool:
    """Lock the account, and return whether the password has not changed since it was verified."""
    return connection.execute(_UNCHANGED, (user.id, user.password_hash)).rowcount > 0


def create_or_lock_user(
    connection: Connection[Any], email: str, hashed: str, *, is_verified: bool
) -> tuple[User, bool]:
    """Create the account of an address. Return it, locked, and whether it is new; an existing one is not changed."""
    values = {"email": email, "hash": hashed, "is_verified": is_verified}
    row = connection.execute(_CREATE, values).fetchone()
    if row is not None:
        return User(*row), True
    existing = lock_user(connection, email)
    assert existing is not None, "accounts are never deleted"
    return existing, False


def reset_password(connection: Connection[Any], user: User, hashed: str, *, is_verified: bool) -> User:
    """Replace the password and end all sessions. A verified account stays verified."""
    values = {"id": user.id, "hash": hashed, "is_verified": is_verified}
    row = connection.execute(_RESET, values).fetchone()
    assert row is not None, "accounts are never deleted"
    _end_sessions(connection, user, _NO_SESSION)
    return User(*row)


def change_password(connection: Connection[Any], user: User, password: str, kept: bytes) -> User | None:
    """Replace the password, and end the sessions of all memberships except `kept`.

    Return None, and change nothing, if the password is no longer the one that was verified.
    """
    changed = rehash_password(connection, user, password)
    if changed is not None:
        # A later statement than the one that waited for the lock: it sees the session of a sign-in that held it.
        _end_sessions(connection, user, kept)
    return changed


def rehash_password(connection: Connection[Any], user: User, password: str) -> User | None:
    """Replace the hash, and keep all sessions. Return None if the password has changed meanwhile."""
    hashed = hash_password(password)
    if not connection.execute(_SET_HASH, (hashed, user.id, user.password_hash)).rowcount:
        return None
    return replace(user, password_hash=hashed)


def _end_sessions(connection: Connection[Any], user: User, kept: bytes) -> None:
    connection.execute(_END_SESSIONS, (user.id, kept))
