"""An operator pauses the webhooks of one application, and resumes them: what falls due meanwhile is parked."""

from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.applications.errors import ApplicationNotFoundError

_PAUSE = """
update applications set webhooks_paused_at = coalesce(webhooks_paused_at, mizan_now()) where id = %s returning id"""
_RESUME = "update applications set webhooks_paused_at = null where id = %s returning id"


def pause_webhooks(connection: Connection[Any], application_id: UUID) -> None:
    if connection.execute(_PAUSE, (application_id,)).fetchone() is None:
        raise ApplicationNotFoundError(application_id)


def resume_webhooks(connection: Connection[Any], application_id: UUID) -> None:
    """The scheduler puts back what was parked."""
    if connection.execute(_RESUME, (application_id,)).fetchone() is None:
        raise ApplicationNotFoundError(application_id)
