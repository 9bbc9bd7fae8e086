"""Deliveries that used up their ladder, newest first, with what became of them since; replay means resend."""

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
"""Instead of a status: PostgreSQL has dropped that month."""
_LONGEST_URL = 500
_TOLD_AGAIN_WITHIN = 500
"""A repeat of a record comes soon after it: so many records are looked at for it."""


@dataclass(frozen=True, slots=True)
class ExhaustedDelivery:
    delivery_id: UUID
    offset: int | None
    """In webhooks.dead; None where nobody looked there."""
    at: datetime
    """When its last try had failed."""
    application_id: UUID
    application: str | None
    merchant: str | None
    event: str | None
    url: str | None
    """Without its query string, which may hold a token."""
    status: str
    """As it is now: a resend may have succeeded since. Or `gone`."""
    tries: int
    last_status_code: int | None
    last_failure: str | None
    last_answer: str | None
    """What the receiver said last, as text without secrets; None where it said nothing."""
    resent_at: datetime | None
    """When somebody last asked for a resend, or it was last resent."""


@dataclass(frozen=True, slots=True)
class ExhaustedPage:
    deliveries: Sequence[ExhaustedDelivery]
    next_before: int | None
    """Where the next page begins; None: there is nothing older."""


_LOOK = """
select d.id, d.application_id, a.name as application, m.name as merchant, d.event, d.url, d.status, d.tries,
       d.last_status_code, d.last_failure, d.updated_at, last.response_body as answer, ended.at as ended_at,
       greatest(asked.at, resent.at) as resent_at
from webhook_deliveries as d
left join applications as a on a.id = d.application_id
left join merchants as m on m.id = a.merchant_id
left join lateral (select response_body from webhook_tries where delivery_id = d.id
                   order by number desc limit 1) as last on true
left join lateral (select at + make_interval(secs => duration_ms / 1000.0) as at from webhook_tries
                   where delivery_id = d.id and step = 9) as ended on true
left join lateral (select max(at) as at from webhook_tries
                   where delivery_id = d.id and step is null) as resent on true
left join lateral (select max(created_at) as at from resend_requests where delivery_id = d.id) as asked on true
where d.id = any(%s::uuid[])"""


def list_exhausted(
    connection: Connection[Any], settings: KafkaSettings, before: int | None, most: int
) -> ExhaustedPage:
    """Each once, though it may have been told twice."""
    with open_topic_reader(settings, WEBHOOKS_DEAD) as reader:
        told = _told_before(reader, before)
        records = reader.read_newest(before, most)
        next_before = records[-1].offset if records and records[-1].offset > reader.first_offset else None
    listed: dict[UUID, tuple[int, DeliveryExhausted]] = {}
    for one in records:
        message = _message(one)
        if message is not None and message.id not in told:
            listed.setdefault(message.id, (one.offset, message))
    known = _look(connection, list(listed))
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
    """From PostgreSQL alone."""
    known = _look(connection, [delivery_id]).get(delivery_id)
    if known is None:
        raise DeliveryNotFoundError(delivery_id)
    return known


def _told_before(reader: TopicReader, before: int | None) -> set[UUID]:
    """What the pages before this one may have listed."""
    if before is None:
        return set()
    messages = map(_message, reader.read_from(before, before + _TOLD_AGAIN_WITHIN, _TOLD_AGAIN_WITHIN))
    return {message.id for message in messages if message is not None}


def _message(found: Record) -> DeliveryExhausted | None:
    """None: what lies there tells of no delivery."""
    try:
        message = decode(found.value)
    except UnreadableMessageError:
        return None
    return message if isinstance(message, DeliveryExhausted) else None


def _look(connection: Connection[Any], ids: Sequence[UUID]) -> dict[UUID, ExhaustedDelivery]:
    if not ids:
        return {}
    with connection.cursor(row_factory=dict_row) as cursor:
        return {row["id"]: _exhausted(row) for row in cursor.execute(_LOOK, (list(ids),))}


def _exhausted(row: dict[str, Any]) -> ExhaustedDelivery:
    return ExhaustedDelivery(
        delivery_id=row["id"],
        offset=None,
        at=row["ended_at"] or row["updated_at"],
        application_id=row["application_id"],
        application=row["application"],
        merchant=row["merchant"],
        event=row["event"],
        url=preview_line(without_query(row["url"]), _LONGEST_URL),
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
