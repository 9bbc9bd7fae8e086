"""Pauses and resumes the webhooks of an application, and checks whether they can be sent now.

Deliveries that come due while an application is paused are set aside. The scheduler requeues them after the resume.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor

from shared.domain.applications.errors import ApplicationNotFoundError
from shared.platform.errors import RefusedError

_SINCE = "select webhooks_paused_at from applications where id = %s"
_PAUSE = """
update applications set webhooks_paused_at = mizan_now() where id = %s and webhooks_paused_at is null"""
_RESUME = "update applications set webhooks_paused_at = null where id = %s and webhooks_paused_at is not null"


def pause_webhooks(connection: Connection[Any], application_id: UUID) -> bool:
    """Pause the webhooks of an application. Returns False, and changes nothing, if they were paused before.

    Raises ApplicationNotFoundError.
    """
    return bool(connection.execute(_PAUSE, (application_id,)).rowcount) or _unchanged(
        connection, application_id
    )


def resume_webhooks(connection: Connection[Any], application_id: UUID) -> bool:
    """Resume the webhooks of an application. Returns False if they were not paused.

    Raises ApplicationNotFoundError.
    """
    return bool(connection.execute(_RESUME, (application_id,)).rowcount) or _unchanged(
        connection, application_id
    )


def paused_since(cursor: Cursor[Any], application_id: UUID) -> datetime | None:
    """Return when the webhooks were paused, or None if they are not. Raises ApplicationNotFoundError."""
    row = cursor.execute(_SINCE, (application_id,)).fetchone()
    if row is None:
        raise ApplicationNotFoundError(application_id)
    since: datetime | None = row[0]
    return since


def _unchanged(connection: Connection[Any], application_id: UUID) -> bool:
    """Return False, or raise ApplicationNotFoundError if there is no such application."""
    if connection.execute(_SINCE, (application_id,)).fetchone() is None:
        raise ApplicationNotFoundError(application_id)
    return False


class SendRefusal(StrEnum):
    """Why webhooks of an application cannot be sent now."""

    NO_URL = "no_url"
    PAUSED = "paused"


_TEXTS = {
    SendRefusal.NO_URL: "the application has no webhook URL; set one first",
    SendRefusal.PAUSED: "an operator has paused this application's webhooks",
}
_SENDING_STATE = (
    "select webhook_url is not null, webhooks_paused_at is not null from applications where id = %s"
)


class SendingRefusedError(RefusedError):
    """Webhooks of this application cannot be sent now. The text says why."""

    def __init__(self, refusal: SendRefusal) -> None:
        super().__init__(_TEXTS[refusal])
        self.refusal = refusal


def find_send_refusal(connection: Connection[Any], application_id: UUID) -> SendRefusal | None:
    """Return why webhooks cannot be sent now, or None if they can."""
    row = connection.execute(_SENDING_STATE, (application_id,)).fetchone()
    has_url, is_paused = row or (False, False)
    if not has_url:
        return SendRefusal.NO_URL
    return SendRefusal.PAUSED if is_paused else None


def check_can_send(connection: Connection[Any], application_id: UUID) -> None:
    """Raise SendingRefusedError if webhooks of this application cannot be sent now."""
    refusal = find_send_refusal(connection, application_id)
    if refusal is not None:
        raise SendingRefusedError(refusal)
