"""Sessions of members and operators: the browser holds a random token, the database its hash, until it expires or
is ended."""

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor

from shared.domain.accounts.members import Member, member_from_row
from shared.platform.tokens import hash_token

IDLE_TIMEOUT_S = 12 * 3600
"""A session ends after this time without a request,"""
MAX_AGE_S = 7 * 24 * 3600
"""and at the latest after this time."""
RECENT_PASSWORD_S = 600
"""For so long after the password was entered, sensitive changes do not ask for it again."""
_MAX_BROWSER_LENGTH = 300
NO_SESSION = b""
"""The hash of no session."""


@dataclass(frozen=True, slots=True)
class MemberSession:
    hash: bytes
    member: Member
    has_recent_password: bool
    """Whether the password was entered in this session within RECENT_PASSWORD_S."""


@dataclass(frozen=True, slots=True)
class ActiveSession:
    hash: bytes
    created_at: datetime
    last_seen_at: datetime
    address: str | None
    browser: str | None


_INSERT = """
insert into sessions (hash, person_id, expires_at, address, browser, password_at)
values (%s, %s, mizan_now() + make_interval(secs => %s), %s, %s, mizan_now())"""
# Written at most once a minute, and only if the session was not ended while this statement waited for the row.
TOUCH_SQL = """
with seen as (
    update sessions set last_seen_at = mizan_now(),
        expires_at = least(mizan_now() + make_interval(secs => %(idle)s),
                           created_at + make_interval(secs => %(longest)s))
    where hash = %(hash)s and expires_at > mizan_now() and last_seen_at < mizan_now() - interval '1 minute'
      and %(is_use)s
)"""
# A function of the schema, because nobody's rows are seen before the session is known (revision 0025). It does the same
# as TOUCH_SQL, and returns MEMBER_COLUMNS.
_FIND = "select * from dashboard_session(%(hash)s, %(is_use)s, %(idle)s, %(longest)s, %(recent)s)"
_LIST = """
select hash, created_at, last_seen_at, address, browser from sessions
where person_id = %s and expires_at > mizan_now() order by last_seen_at desc, hash limit 100"""
_END = "update sessions set expires_at = mizan_now() where person_id = %s and hash = %s and expires_at > mizan_now()"
_CONFIRM = "update sessions set password_at = mizan_now() where hash = %s and expires_at > mizan_now()"
_END_OTHERS = """
update sessions set expires_at = mizan_now() where person_id = %s and hash <> %s and expires_at > mizan_now()"""


def start_session(connection: Connection[Any], person_id: UUID, address: str, browser: str) -> str:
    """Start a session, after the password was entered. Return the token for the browser."""
    token = secrets.token_urlsafe(32)
    values = (hash_token(token), person_id, IDLE_TIMEOUT_S, address, browser[:_MAX_BROWSER_LENGTH])
    connection.execute(_INSERT, values)
    return token


def find_session(cursor: Cursor[Any], token: str, *, is_use: bool = True) -> MemberSession | None:
    """Return the session of this token if it has not expired or ended and its member is not removed.

    Background requests pass `is_use=False`: they do not extend the session.
    """
    values = {**touch_values(token, is_use=is_use), "recent": RECENT_PASSWORD_S}
    row = cursor.execute(_FIND, values).fetchone() if token else None
    return None if row is None else MemberSession(hash_token(token), member_from_row(row[1:]), row[0])


def record_password_entry(connection: Connection[Any], hashed: bytes) -> None:
    """Record that the password was entered now in this session. Call it only after it was right."""
    connection.execute(_CONFIRM, (hashed,))


def touch_values(token: str, *, is_use: bool) -> dict[str, object]:
    """Return the parameters of TOUCH_SQL."""
    return {"hash": hash_token(token), "idle": IDLE_TIMEOUT_S, "longest": MAX_AGE_S, "is_use": is_use}


def list_sessions(connection: Connection[Any], person_id: UUID) -> list[ActiveSession]:
    """Return the active sessions, the most recently used first."""
    return [ActiveSession(*row) for row in connection.execute(_LIST, (person_id,))]


def end_session(connection: Connection[Any], person_id: UUID, hashed: bytes) -> bool:
    """End a session. Return whether this person had it."""
    return connection.execute(_END, (person_id, hashed)).rowcount > 0


def end_other_sessions(connection: Connection[Any], person_id: UUID, kept: bytes) -> int:
    return connection.execute(_END_OTHERS, (person_id, kept)).rowcount
