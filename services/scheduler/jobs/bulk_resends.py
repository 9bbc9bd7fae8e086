"""Bulk resends: puts the failed deliveries of a period on webhooks.resend, a few each second, the oldest first.

What goes into the outbox, and how far it has come, is one transaction: after a crash it goes on where it was, and of
two schedulers one does it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from prometheus_client import Counter
from psycopg import Connection
from psycopg.rows import class_row

from shared.domain.deliveries.bulk_resend import FAILED_FACETS, FAILED_OF_FACET_SQL, BulkResendOutcome
from shared.domain.deliveries.pause import find_send_refusal
from shared.domain.topics import WEBHOOKS_RESEND
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import read_in_index_order

RESENT = Counter("mizan_webhook_bulk_resent", "Failed deliveries queued again by bulk resends")

BATCH = 20
BATCH_EVERY_S = 1.0
"""Together: so many go each second, for each application."""
PAUSE_S = 0.5

_CLAIM = """
select id, application_id, last_delivery_id, until, created_at from bulk_resends
where finished_at is null and next_batch_at <= mizan_now()
order by next_batch_at limit 1 for update skip locked"""
# Whatever happened to a delivery after it was asked for, it is no longer what the person wanted resent: it was resent
# by somebody, or has failed only now. The limit is written out for the planner's sake.
BATCH_SQL = f"""
select failed.id from unnest(%(facets)s::smallint[]) as wanted (facet)
cross join lateral ({FAILED_OF_FACET_SQL} limit {BATCH}) as failed
order by id limit {BATCH}"""
_UNTIL_ID = "select uuid7_floor(%s)"
# What somebody has asked for, and what is in line from an earlier bulk, is on its way: it goes once. After an hour
# the wish is taken for lost.
_REQUEST_RESENDS = f"""
with wanted as (
    select wish, delivery, place
    from unnest(%(wishes)s::uuid[], %(deliveries)s::uuid[]) with ordinality as one (wish, delivery, place)
    where not exists (
        select from resend_requests as asked
        where asked.delivery_id = delivery and asked.created_at > mizan_now() - interval '1 hour'
          and not exists (select from webhook_tries as t
                          where t.delivery_id = delivery and t.resend_id = asked.id offset 0)
        offset 0)
),
noted as (
    insert into resend_requests (id, delivery_id) select wish, delivery from wanted on conflict (id) do nothing
)
insert into outbox (topic, key, payload)
select '{WEBHOOKS_RESEND.name}', delivery, resend_requested_message(wish, delivery, %(application)s)
from wanted order by place"""
_ADVANCE = """
update bulk_resends
set resent = resent + %(count)s, last_delivery_id = coalesce(%(last_delivery)s, last_delivery_id),
    next_batch_at = mizan_now() + make_interval(secs => %(pause_s)s),
    finished_at = case when %(outcome)s::text is not null then mizan_now() end, outcome = %(outcome)s
where id = %(id)s"""


@dataclass(frozen=True, slots=True)
class _BulkResend:
    id: UUID
    application_id: UUID
    last_delivery_id: UUID
    until: datetime
    created_at: datetime


class BulkResends:
    name = "bulk-resends"

    def __init__(self, database: Database) -> None:
        self._database = database

    def run_once(self) -> float:
        """A batch of one application's, and at once of the next one's."""
        with self._database.transaction() as connection:
            read_in_index_order(connection)
            under_way = _claim(connection)
            if under_way is None:
                return PAUSE_S
            resent = _advance(connection, under_way)
        RESENT.inc(resent)
        return 0.0

    def close(self) -> None:
        """The database belongs to the process."""


def _claim(connection: Connection[Any]) -> _BulkResend | None:
    with connection.cursor(row_factory=class_row(_BulkResend)) as cursor:
        return cursor.execute(_CLAIM).fetchone()


def _advance(connection: Connection[Any], under_way: _BulkResend) -> int:
    refusal = find_send_refusal(connection, under_way.application_id)
    deliveries = [] if refusal else _next_deliveries(connection, under_way)
    resent = 0
    if deliveries:
        values = {
            "application": under_way.application_id,
            "deliveries": deliveries,
            "wishes": [resend_id(under_way.id, delivery) for delivery in deliveries],
        }
        resent = connection.execute(_REQUEST_RESENDS, values).rowcount
    outcome = (
        BulkResendOutcome(refusal) if refusal else BulkResendOutcome.DONE if len(deliveries) < BATCH else None
    )
    connection.execute(
        _ADVANCE,
        {
            "id": under_way.id,
            "count": resent,
            "last_delivery": max(deliveries, default=None),
            "pause_s": BATCH_EVERY_S,
            "outcome": outcome,
        },
    )
    return resent


def _next_deliveries(connection: Connection[Any], under_way: _BulkResend) -> Sequence[UUID]:
    (behind,) = connection.execute(_UNTIL_ID, (under_way.until,)).fetchone() or (None,)
    values = {
        "application": under_way.application_id,
        "facets": FAILED_FACETS,
        "after_id": under_way.last_delivery_id,
        "before_id": behind,
        "requested_at": under_way.created_at,
    }
    return [row[0] for row in connection.execute(BATCH_SQL, values)]


def resend_id(bulk_id: UUID, delivery_id: UUID) -> UUID:
    """Always the same for the same two, so that a repeat is met once."""
    return uuid5(bulk_id, str(delivery_id))
