"""Exhausted deliveries: those whose last try of the retry schedule failed, newest first, with their current state.

The topic webhooks.dead lists them. To replay one means to resend its delivery.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row

from shared.domain.dead_letters.preview import preview_line, preview_text
from shared.domain.dead_letters.queries import to_utc
from shared.domain.dead_letters.topic_reader import TopicReader, open_topic_reader
from shared.domain.deliveries.resend import DeliveryNotFoundError
from shared.domain.messages import DeliveryExhausted, decode
from shared.domain.topics import WEBHOOKS_DEAD
from shared.platform.kafka.errors import UnreadableMessageError
from shared.platform.kafka.records import Record
from shared.platform.settings import KafkaSettings

GONE = "gone"
"""Takes the place of the status if the delivery is past its retention and no longer in PostgreSQL."""
_MAX_URL_LENGTH = 500
_DUPLICATES_WITHIN = 500
"""A duplicate of a record follows soon after it: within this many records."""


@dataclass(frozen=True, slots=True)
class ExhaustedDelivery:
    delivery_id: UUID
    offset: int | None
    """The offset of its record in webhooks.dead, or None if the topic was not read."""
    at: datetime
    """When its last try failed."""
    application_id: UUID
    application: str | None
    merchant: str | None
    event: str | None
    url: str | None
    """Without its query string, which may hold a token."""
    status: str
    """The current status, which a resend may have changed since, or GONE."""
    tries: int
    last_status_code: int | None
    last_failure: str | None
    last_answer: str | None
    """The body of the last response, as text without secrets, or None if there was none."""
    resent_at: datetime | None
    """When a resend was last requested or sent."""


@dataclass(frozen=True, slots=True)
class ExhaustedPage:
    deliveries: Sequence[ExhaustedDelivery]
    next_before: int | None
    """Pass it as `before` to get the next page; None if there is nothing older."""


_FETCH = """
select d.id, d.application_id, a.name as application, m.name as merchant, d.event, d.url, d.status, d.tries,
       d.last_status_code, d.last_failure, d.updated_at, last.response_body as answer, ended.at as ended_at,
       greatest(requested.at, resent.at) as resent_at
from webhook_deliveries as d
left join applications as a on a.id = d.application_id
left join merchants as m on m.id = a.merchant_id
left join lateral (select response_body from webhook_tries where delivery_id = d.id
                   order by number desc limit 1) as last on true
left join lateral (select at + make_interval(secs => duration_ms / 1000.0) as at from webhook_tries
                   where delivery_id = d.id and step = 9) as ended on true
left join lateral (select max(at) as at from webhook_tries
                   where delivery_id = d.id and step is null) as resent on true
left join lateral (select max(created_at) as at from resend_requests where delivery_id = d.id) as requested on true
where d.id = any(%s::uuid[])"""


def list_exhausted(
    connection: Connection[Any], settings: KafkaSettings, before: int | None, most: int
) -> ExhaustedPage:
    """Return up to `most` exhausted deliveries before this offset, newest first, each once even if published twice."""
    with open_topic_reader(settings, WEBHOOKS_DEAD) as reader:
        seen = _seen_on_earlier_pages(reader, before)
        records = reader.read_newest(before, most)
        next_before = records[-1].offset if records and records[-1].offset > reader.first_offset else None
    listed: dict[UUID, tuple[int, DeliveryExhausted]] = {}
    for one in records:
        message = _message(one)
        if message is not None and message.id not in seen:
            listed.setdefault(message.id, (one.offset, message))
    known = _fetch(connection, list(listed))
    return ExhaustedPage(
        [
            replace(known[delivery], offset=offset, at=to_utc(message.at))
            if delivery in known
            else _gone(offset, message)
            for delivery, (offset, message) in listed.items()
        ],
        next_before,
    )


def get_exhausted(connection: Connection[Any], delivery_id: UUID) -> ExhaustedDelivery:
    """Return one exhausted delivery, from PostgreSQL alone. Raises DeliveryNotFoundError."""
    known = _fetch(connection, [delivery_id]).get(delivery_id)
    if known is None:
        raise DeliveryNotFoundError(delivery_id)
    return known


def _seen_on_earlier_pages(reader: TopicReader, before: int | None) -> set[UUID]:
    """Return the ids that the pages before this one may have listed."""
    if before is None:
        return set()
    messages = map(_message, reader.read_from(before, before + _DUPLICATES_WITHIN, _DUPLICATES_WITHIN))
    return {message.id for message in messages if message is not None}


def _message(record: Record) -> DeliveryExhausted | None:
    """Return the message of a record, or None if it is no DeliveryExhausted."""
    try:
        message = decode(record.value)
    except UnreadableMessageError:
        return None
    return message if isinstance(message, DeliveryExhausted) else None


def _fetch(connection: Connection[Any], ids: Sequence[UUID]) -> dict[UUID, ExhaustedDelivery]:
    if not ids:
        return {}
    with connection.cursor(row_factory=dict_row) as cursor:
        return {row["id"]: _exhausted(row) for row in cursor.execute(_FETCH, (list(ids),))}


def _exhausted(row: dict[str, Any]) -> ExhaustedDelivery:
    return ExhaustedDelivery(
        delivery_id=row["id"],
        offset=None,
        at=row["ended_at"] or row["updated_at"],
        application_id=row["application_id"],
        application=row["application"],
        merchant=row["merchant"],
        event=row["event"],
        url=preview_line(without_query(row["url"]), _MAX_URL_LENGTH),
        status=row["status"],
        tries=row["tries"],
        last_status_code=row["last_status_code"],
        last_failure=row["last_failure"],
        last_answer=preview_text(bytes(row["answer"])) if row["answer"] else None,
        resent_at=row["resent_at"],
    )


def _gone(offset: int, message: DeliveryExhausted) -> ExhaustedDelivery:
    return ExhaustedDelivery(
        delivery_id=message.id,
        offset=offset,
        at=to_utc(message.at),
        application_id=message.application_id,
        application=None,
        merchant=None,
        event=None,
        url=None,
        status=GONE,
        tries=0,
        last_status_code=None,
        last_failure=None,
        last_answer=None,
        resent_at=None,
    )


def without_query(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]
