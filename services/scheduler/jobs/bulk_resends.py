"""Bulk resends: requests resends of the failed deliveries of a period, or of all that wait, a few each second, the
oldest first.

One transaction writes a batch into the outbox and moves the number forward. So after a crash the resend continues
where it was, and two schedulers do not send anything twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from prometheus_client import Counter
from psycopg import Connection
from psycopg.rows import class_row

from shared.domain.deliveries.bulk_resend import BulkResendOutcome
from shared.domain.deliveries.bulk_selection import BATCH, BATCH_SQL, FACETS, BulkResendKind
from shared.domain.deliveries.pause import find_send_refusal
from shared.domain.topics import WEBHOOKS_RESEND
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import read_in_index_order

RESENT = Counter("mizan_webhook_bulk_resent", "Deliveries queued again by bulk resends")

BATCH_EVERY_S = 1.0
"""Together with the size of a batch it limits each application to 20 resends a second."""
PAUSE_S = 0.5

_CLAIM = """
select id, application_id, kind, last_delivery_id, until, created_at from bulk_resends
where finished_at is null and next_batch_at <= mizan_now()
order by next_batch_at limit 1 for update skip locked"""
_UNTIL_ID = "select uuid7_floor(%s)"
# A delivery whose resend is already queued is left out, so that it is resent once. After an hour without a try that
# resend counts as lost.
_REQUEST_RESENDS = f"""
with chosen as (
    select resend, delivery, number
    from unnest(%(resends)s::uuid[], %(deliveries)s::uuid[]) with ordinality as one (resend, delivery, number)
    where not exists (
        select from resend_requests as asked
        where asked.delivery_id = delivery and asked.created_at > mizan_now() - interval '1 hour'
          and not exists (select from webhook_tries as t
                          where t.delivery_id = delivery and t.resend_id = asked.id offset 0)
        offset 0)
),
requested as (
    insert into resend_requests (id, delivery_id, unless_succeeded)
    select resend, delivery, true from chosen on conflict (id) do nothing
)
insert into outbox (topic, key, payload)
select '{WEBHOOKS_RESEND.name}', delivery, resend_requested_message(resend, delivery, %(application)s)
from chosen order by number"""
_ADVANCE = """
update bulk_resends
set resent = resent + %(count)s, found = greatest(found, resent + %(count)s),
    last_delivery_id = coalesce(%(last_delivery)s, last_delivery_id),
    next_batch_at = mizan_now() + make_interval(secs => %(pause_s)s),
    finished_at = case when %(outcome)s::text is not null then mizan_now() end, outcome = %(outcome)s
where id = %(id)s"""


@dataclass(frozen=True, slots=True)
class _BulkResend:
    id: UUID
    application_id: UUID
    kind: str
    last_delivery_id: UUID
    until: datetime
    created_at: datetime


class BulkResends:
    name = "bulk-resends"

    def __init__(self, database: Database) -> None:
        self._database = database

    def run_once(self) -> float:
        """Request a batch of one bulk resend, and run again at once for the next one."""
        with self._database.transaction() as connection:
            read_in_index_order(connection)
            bulk = _claim(connection)
            if bulk is None:
                return PAUSE_S
            resent = _advance(connection, bulk)
        RESENT.inc(resent)
        return 0.0

    def close(self) -> None:
        """The process closes the database."""


def _claim(connection: Connection[Any]) -> _BulkResend | None:
    with connection.cursor(row_factory=class_row(_BulkResend)) as cursor:
        return cursor.execute(_CLAIM).fetchone()


def _advance(connection: Connection[Any], bulk: _BulkResend) -> int:
    refusal = find_send_refusal(connection, bulk.application_id)
    deliveries = [] if refusal else _next_deliveries(connection, bulk)
    resent = 0
    if deliveries:
        values = {
            "application": bulk.application_id,
            "deliveries": deliveries,
            "resends": [resend_id(bulk.id, delivery) for delivery in deliveries],
        }
        resent = connection.execute(_REQUEST_RESENDS, values).rowcount
    outcome = (
        BulkResendOutcome(refusal) if refusal else BulkResendOutcome.DONE if len(deliveries) < BATCH else None
    )
    connection.execute(
        _ADVANCE,
        {
            "id": bulk.id,
            "count": resent,
            "last_delivery": max(deliveries, default=None),
            "pause_s": BATCH_EVERY_S,
            "outcome": outcome,
        },
    )
    return resent


def _next_deliveries(connection: Connection[Any], bulk: _BulkResend) -> Sequence[UUID]:
    (until,) = connection.execute(_UNTIL_ID, (bulk.until,)).fetchone() or (None,)
    kind = BulkResendKind(bulk.kind)
    values = {
        "application": bulk.application_id,
        "facets": FACETS[kind],
        "after_id": bulk.last_delivery_id,
        "before_id": until,
        "requested_at": bulk.created_at,
    }
    return [row[0] for row in connection.execute(BATCH_SQL[kind], values)]


def resend_id(bulk_id: UUID, delivery_id: UUID) -> UUID:
    """Return the resend's id, always the same for the same pair, so that a repeated batch requests it once."""
    return uuid5(bulk_id, str(delivery_id))
