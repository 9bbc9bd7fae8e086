"""An operator pauses the webhooks of one application, and resumes them: what falls due meanwhile is parked."""

from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor

from shared.domain.applications.errors import ApplicationNotFoundError

_SINCE = "select webhooks_paused_at from applications where id = %s"
_PAUSE = """
update applications set webhooks_paused_at = mizan_now() where id = %s and webhooks_paused_at is null"""
_RESUME = "update applications set webhooks_paused_at = null where id = %s and webhooks_paused_at is not null"


def pause_webhooks(connection: Connection[Any], application_id: UUID) -> bool:
    """Whether this call paused them; False when they were paused before, since when they stay so."""
    return bool(connection.execute(_PAUSE, (application_id,)).rowcount) or _was_before(
        connection, application_id
    )


def resume_webhooks(connection: Connection[Any], application_id: UUID) -> bool:
    """The scheduler puts back what was parked. Whether this call resumed them."""
    return bool(connection.execute(_RESUME, (application_id,)).rowcount) or _was_before(
        connection, application_id
    )


def paused_since(cursor: Cursor[Any], application_id: UUID) -> datetime | None:
    """None: they are not paused."""
    row = cursor.execute(_SINCE, (application_id,)).fetchone()
    if row is None:
        raise ApplicationNotFoundError(application_id)
    since: datetime | None = row[0]
    return since


def _was_before(connection: Connection[Any], application_id: UUID) -> bool:
    if connection.execute(_SINCE, (application_id,)).fetchone() is None:
        raise ApplicationNotFoundError(application_id)
    return False
