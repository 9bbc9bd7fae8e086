"""Operators: the people who run Mizan and sign in to the monitor.

They belong to no merchant, and are created on the command line only.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor
from psycopg.errors import UniqueViolation

from shared.domain.accounts.members import check_email
from shared.domain.accounts.passwords import hash_password
from shared.domain.accounts.sessions import TOUCH_SQL, end_other_sessions, touch_values
from shared.platform.errors import RefusedError
from shared.platform.tokens import hash_token

_COLUMNS = "o.id, o.email, o.password_hash, o.created_at"
_PRESENT = f"{_COLUMNS} from operators as o where o.removed_at is null"
_LIST = f"select {_PRESENT} order by o.id"
_BY_EMAIL = f"select {_PRESENT} and o.email = %s"
_REMOVED = "select id from operators where email = %s and removed_at is not null order by id desc limit 1"
_ADD = "insert into operators (email, password_hash) values (%s, %s) returning id"
_REMOVE = "update operators set removed_at = mizan_now() where id = %s and removed_at is null"
_CHANGE = "update operators set password_hash = %s where id = %s and removed_at is null"
_CHANGE_UNCHANGED = f"{_CHANGE} and password_hash = %s"
_UNCHANGED = "select from operators where id = %s and removed_at is null and password_hash = %s for update"
_FIND_SESSION = f"""{TOUCH_SQL}
select {_COLUMNS} from sessions as found join operators as o on o.id = found.person_id and o.removed_at is null
where found.hash = %(hash)s and found.expires_at > mizan_now()"""


class OperatorExistsError(RefusedError):
    def __init__(self) -> None:
        super().__init__("there is already an operator with this email address")


class OperatorNotFoundError(RefusedError):
    def __init__(self) -> None:
        super().__init__("there is no such operator")


@dataclass(frozen=True, slots=True)
class Operator:
    id: UUID
    email: str
    password_hash: str = field(repr=False)
    created_at: datetime


@dataclass(frozen=True, slots=True)
class OperatorSession:
    hash: bytes
    operator: Operator


def add_operator(connection: Connection[Any], email: str, password: str) -> UUID:
    try:
        with connection.transaction():
            row = connection.execute(_ADD, (check_email(email), hash_password(password))).fetchone()
    except UniqueViolation:
        raise OperatorExistsError from None
    assert row is not None
    return UUID(str(row[0]))


def find_operator_by_email(cursor: Cursor[Any], email: str) -> Operator | None:
    """Find an operator by the address as `check_email` returns it."""
    row = cursor.execute(_BY_EMAIL, (email,)).fetchone()
    return None if row is None else Operator(*row)


def find_removed_operator(cursor: Cursor[Any], email: str) -> UUID | None:
    """Return the id of the operator who was last removed with this address."""
    row = cursor.execute(_REMOVED, (email,)).fetchone()
    return None if row is None else UUID(str(row[0]))


def get_operator(connection: Connection[Any], email: str) -> Operator:
    with connection.cursor() as cursor:
        found = find_operator_by_email(cursor, check_email(email))
    if found is None:
        raise OperatorNotFoundError
    return found


def list_operators(connection: Connection[Any]) -> list[Operator]:
    return [Operator(*row) for row in connection.execute(_LIST)]


def remove_operator(connection: Connection[Any], operator_id: UUID) -> None:
    """Remove an operator; their sessions end with it."""
    connection.execute(_REMOVE, (operator_id,))


def set_operator_password(connection: Connection[Any], operator_id: UUID, password: str) -> str:
    """Set the password of an operator. Return its hash."""
    hashed = hash_password(password)
    connection.execute(_CHANGE, (hashed, operator_id))
    return hashed


def change_operator_password(
    connection: Connection[Any], operator: Operator, password: str, kept: bytes
) -> Operator | None:
    """Replace the password, and end all sessions except `kept`.

    Return None, and change nothing, if the password is no longer the one that was verified.
    """
    hashed = hash_password(password)
    values = (hashed, operator.id, operator.password_hash)
    if not connection.execute(_CHANGE_UNCHANGED, values).rowcount:
        return None
    end_other_sessions(connection, operator.id, kept)
    return replace(operator, password_hash=hashed)


def lock_unchanged_operator_password(connection: Connection[Any], operator: Operator) -> bool:
    """Lock the operator, and return whether the password has not changed since it was verified."""
    return connection.execute(_UNCHANGED, (operator.id, operator.password_hash)).rowcount > 0


def find_operator_session(cursor: Cursor[Any], token: str, *, is_use: bool = True) -> OperatorSession | None:
    """Find an operator's session, like shared.domain.accounts.sessions.find_session finds a member's."""
    row = cursor.execute(_FIND_SESSION, touch_values(token, is_use=is_use)).fetchone() if token else None
    return None if row is None else OperatorSession(hash_token(token), Operator(*row))
