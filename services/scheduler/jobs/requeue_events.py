"""Requeues events that the webhook intake has not processed for so long that their record must be lost.

A lost topic, or even a lost Kafka cluster, therefore loses no event.
"""

from collections.abc import Sequence
from uuid import UUID

from prometheus_client import Counter, Gauge

from services.scheduler.requeue_sweep import BATCH, WINDOW, RequeueSweep, RequeueThresholds, SweepWindow
from services.scheduler.topic_backlog import TopicBacklog
from shared.domain.topics import PAYMENT_INTENT_EVENTS
from shared.platform.database.pool import Database, fetch_scalar
from shared.platform.database.stable_plans import in_index_order
from shared.platform.settings import KafkaSettings
from shared.platform.uuids import uuid7_timestamp

REQUEUED = Counter("mizan_events_republished", "Events published again because the intake had missed them")
OLDEST_PENDING = Gauge(
    "mizan_webhook_intake_oldest_event_age_seconds",
    "Age of the oldest event that the webhook intake has not processed",
)

_NOT_TAKEN_IN = "taken_in_at is null and type in ('payment_intent.succeeded', 'payment_intent.canceled')"
_NOT_REQUEUED_RECENTLY = """
(republished_at is null or republished_at <= mizan_now() - make_interval(secs => %(requeue_interval_s)s))"""
_IS_OLD = "id < uuid7_floor(mizan_now() - make_interval(secs => %(min_overdue_s)s))"

FIND_PENDING_SQL = f"""
with ahead as materialized (
    select id, republished_at from intent_events
    where id > %(id)s and {_NOT_TAKEN_IN} order by id limit {WINDOW}
),
chosen as materialized (
    select id from ahead where {_IS_OLD} and {_NOT_REQUEUED_RECENTLY} order by id limit {BATCH}
)
select mizan_now(), (select id from ahead order by id limit 1), array(select id from chosen order by id),
       (select id from ahead order by id desc limit 1),
       (select count(*) from ahead) = {WINDOW}"""

# The range from the first to the last id limits the search to the monthly partitions that hold them. Events that the
# webhook service is processing at this moment are locked, and skipped.
REQUEUE_SQL = f"""
with republished as (
    update intent_events set republished_at = mizan_now()
    where id between %(first)s and %(last)s and id = any(array(
        select id from intent_events
        where id between %(first)s and %(last)s and id = any(%(ids)s) and {_NOT_TAKEN_IN}
          and {_IS_OLD} and {_NOT_REQUEUED_RECENTLY}
        order by id for no key update skip locked))
    returning id, intent_uuid, seq, type, at
),
queued as (
    insert into outbox (topic, key, payload)
    select '{PAYMENT_INTENT_EVENTS.name}', e.intent_uuid,
           intent_event_message(e.id, e.intent_uuid, i.application_id, e.seq, e.type, e.at)
    from republished as e
    cross join lateral (select application_id from payment_intents where uuid = e.intent_uuid offset 0) as i
    order by e.id
)
select count(*) from republished"""

OLDEST_IN_OUTBOX_SQL = """
select coalesce((select extract(epoch from mizan_now() - created_at)::float8 from outbox order by id limit 1), 0)"""


class EventRequeue:
    name = "requeue-events"

    def __init__(
        self, database: Database, kafka: KafkaSettings, thresholds: RequeueThresholds | None = None
    ) -> None:
        thresholds = thresholds or RequeueThresholds()
        self._sweep = RequeueSweep(_PendingEvents(database, kafka, thresholds), thresholds, OLDEST_PENDING)

    def run_once(self) -> float:
        """Requeue one batch at most."""
        return self._sweep.step()[1]

    def close(self) -> None:
        """The process closes the database."""


class _PendingEvents:
    """Events that become webhooks and are not processed yet, the oldest first; the time is read from their ids."""

    def __init__(self, database: Database, kafka: KafkaSettings, thresholds: RequeueThresholds) -> None:
        self._database = database
        self._backlog = TopicBacklog(kafka, (PAYMENT_INTENT_EVENTS,))
        self._thresholds = thresholds

    def read_window(self, position: UUID | None) -> SweepWindow[UUID]:
        values = {
            "id": position or UUID(int=0),
            "min_overdue_s": self._thresholds.min_overdue_s,
            "requeue_interval_s": self._thresholds.requeue_interval_s,
        }
        with in_index_order(self._database) as cursor:
            row = cursor.execute(FIND_PENDING_SQL, values).fetchone()
        assert row is not None
        now, oldest, ids, newest, is_full = row
        return SweepWindow(
            now=now.timestamp(),
            oldest=_created_at(oldest),
            ids=ids,
            oldest_id=_created_at(ids[0] if ids else None),
            newest=_created_at(newest),
            next_position=ids[-1] if len(ids) == BATCH else newest if is_full else None,
        )

    def backlog_age_s(self, now: float) -> float:
        """Measure the outbox first, then the topic: a record moves from the one to the other."""
        with self._database.cursor() as cursor:
            in_outbox_s = float(fetch_scalar(cursor, OLDEST_IN_OUTBOX_SQL))
        return max(in_outbox_s, self._backlog.oldest_age_s(now))

    def requeue(self, ids: Sequence[UUID], min_overdue_s: float) -> int:
        values = {
            "ids": list(ids),
            "first": min(ids),
            "last": max(ids),
            "min_overdue_s": min_overdue_s,
            "requeue_interval_s": self._thresholds.requeue_interval_s,
        }
        with in_index_order(self._database) as cursor:
            republished = int(fetch_scalar(cursor, REQUEUE_SQL, values))
        REQUEUED.inc(republished)
        return republished


def _created_at(event_id: UUID | None) -> float | None:
    return None if event_id is None else uuid7_timestamp(str(event_id))
