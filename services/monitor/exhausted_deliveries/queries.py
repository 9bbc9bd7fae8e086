"""Queries for the tries of a delivery and for bulk resends of all applications."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, dict_row

from shared.domain.dead_letters.preview import preview_line, preview_text
from shared.domain.deliveries.exhausted import without_query

_MAX_URL_LENGTH = 500
_MAX_TRIES = 50

_COLUMNS = """
select b.id, b.application_id, a.name as application, m.name as merchant, b.kind, b.since, b.until, b.found,
       b.is_count_exact, b.resent,
       b.created_at, b.finished_at, b.outcome
from bulk_resends as b
join applications as a on a.id = b.application_id
join merchants as m on m.id = a.merchant_id"""
_LIST = f"{_COLUMNS} order by b.finished_at is not null, b.created_at desc, b.id limit %s"
_GET = f"{_COLUMNS} where b.id = %s"


@dataclass(frozen=True, slots=True)
class BulkResend:
    id: UUID
    application_id: UUID
    application: str
    merchant: str
    kind: str
    """See `BulkResendKind`."""
    since: datetime
    until: datetime
    found: int
    is_count_exact: bool
    """False if there were more than were counted."""
    resent: int
    created_at: datetime
    finished_at: datetime | None
    outcome: str | None

    @property
    def share(self) -> float:
        """Return the progress, from 0 to 1."""
        return 1.0 if self.outcome == "done" else min(1.0, self.resent / self.found)


def list_bulk_resends(connection: Connection[Any], most: int) -> list[BulkResend]:
    """Return those in progress first, then the latest."""
    with connection.cursor(row_factory=class_row(BulkResend)) as cursor:
        return cursor.execute(_LIST, (most,)).fetchall()


def find_bulk_resend(connection: Connection[Any], resend_id: UUID) -> BulkResend | None:
    with connection.cursor(row_factory=class_row(BulkResend)) as cursor:
        return cursor.execute(_GET, (resend_id,)).fetchone()


_TRIES = f"""
select number, step, at, duration_ms, url, status_code, failure, coalesce(response_body, '') as answer
from webhook_tries where delivery_id = %s order by number desc limit {_MAX_TRIES}"""
_INTENT = "select intent_uuid from webhook_deliveries where id = %s"


@dataclass(frozen=True, slots=True)
class DeliveryTry:
    number: int
    step: int | None
    """None for a resend."""
    at: datetime
    duration_ms: int
    url: str
    """Without the query string, which can contain a token."""
    status_code: int | None
    failure: str | None
    answer: str


def list_tries(connection: Connection[Any], delivery_id: UUID) -> list[DeliveryTry]:
    """Return the tries, latest first. URLs and response bodies are shortened and free of secrets."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return [_try(row) for row in cursor.execute(_TRIES, (delivery_id,))]


def find_intent(connection: Connection[Any], delivery_id: UUID) -> UUID | None:
    row = connection.execute(_INTENT, (delivery_id,)).fetchone()
    return None if row is None else row[0]


def _try(row: dict[str, Any]) -> DeliveryTry:
    url = preview_line(without_query(row["url"]), _MAX_URL_LENGTH)
    return DeliveryTry(**{**row, "url": url, "answer": preview_text(bytes(row["answer"]))})
