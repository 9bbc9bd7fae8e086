"""Whether anything of an application can be sent now, when somebody asks for it."""

from enum import StrEnum
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.platform.errors import RefusedError


class Refusal(StrEnum):
    """Why nothing is sent now."""

    NO_URL = "no_url"
    PAUSED = "paused"


_TEXTS = {
    Refusal.NO_URL: "the application has no webhook URL; set one first",
    Refusal.PAUSED: "an operator has paused this application's webhooks",
}
_STANDING = "select webhook_url is not null, webhooks_paused_at is not null from applications where id = %s"


class SendingRefusedError(RefusedError):
    """It cannot be sent now; the text says why."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(_TEXTS[refusal])
        self.refusal = refusal


def refusal_of(connection: Connection[Any], application_id: UUID) -> Refusal | None:
    row = connection.execute(_STANDING, (application_id,)).fetchone()
    has_url, is_paused = row or (False, False)
    if not has_url:
        return Refusal.NO_URL
    return Refusal.PAUSED if is_paused else None


def check_can_send(connection: Connection[Any], application_id: UUID) -> None:
    refusal = refusal_of(connection, application_id)
    if refusal is not None:
        raise SendingRefusedError(refusal)
