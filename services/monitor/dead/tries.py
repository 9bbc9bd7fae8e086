"""The tries of one delivery: when, where to, and what the receiver said, as text without secrets."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row

from shared.domain.dead_letters.preview import readable, readable_line
from shared.domain.deliveries.exhausted import without_query

_LONGEST_URL = 500
_MOST = 50
_TRIES = f"""
select number, step, at, duration_ms, url, status_code, failure, coalesce(answer, '') as answer
from webhook_tries where delivery_id = %s order by number desc limit {_MOST}"""
_INTENT = "select intent_uuid from webhook_deliveries where id = %s"


@dataclass(frozen=True, slots=True)
class DeliveryTry:
    number: int
    step: int | None
    """None: a resend."""
    at: datetime
    duration_ms: int
    url: str
    """Without its query string, which may hold a token."""
    status_code: int | None
    failure: str | None
    answer: str


def list_tries(connection: Connection[Any], delivery_id: UUID) -> list[DeliveryTry]:
    """The latest first."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return [_try(row) for row in cursor.execute(_TRIES, (delivery_id,))]


def intent_of(connection: Connection[Any], delivery_id: UUID) -> UUID | None:
    row = connection.execute(_INTENT, (delivery_id,)).fetchone()
    return None if row is None else row[0]


def _try(row: dict[str, Any]) -> DeliveryTry:
    url = readable_line(without_query(row["url"]), _LONGEST_URL)
    return DeliveryTry(**{**row, "url": url, "answer": readable(bytes(row["answer"]))})
