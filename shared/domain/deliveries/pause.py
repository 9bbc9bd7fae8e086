"""An operator pauses the webhooks of one application, and resumes them: what falls due meanwhile is parked."""

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


class SendRefusal(StrEnum):
    """Why nothing is sent now."""

    NO_URL = "no_url"
    PAUSED = "paused"


_TEXTS = {
    SendRefusal.NO_URL: "the application has no webhook URL; set one first",
    SendRefusal.PAUSED: "an operator has paused this application's webhooks",
}
_STANDING = "select webhook_url is not null, webhooks_paused_at is not null from applications where id = %s"


class SendingRefusedError(RefusedError):
    """It cannot be sent now; the text says why."""

    def __init__(self, refusal: SendRefusal) -> None:
        super().__init__(_TEXTS[refusal])
        self.refusal = refusal


def find_send_refusal(connection: Connection[Any], application_id: UUID) -> SendRefusal | None:
    row = connection.execute(_STANDING, (application_id,)).fetchone()
    has_url, is_paused = row or (False, False)
    if not has_url:
        return SendRefusal.NO_URL
    return SendRefusal.PAUSED if is_paused else None


def check_can_send(connection: Connection[Any], application_id: UUID) -> None:
    refusal = find_send_refusal(connection, application_id)
    if refusal is not None:
        raise SendingRefusedError(refusal)
