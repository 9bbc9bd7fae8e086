"""Republish: events that the webhooks have not taken in for so long that their record must be lost are published again.

So a lost topic, even all of Kafka, loses nothing.
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
_NOT_REQUEUED_RECENTLY = (
    "(republished_at is null or republished_at <= mizan_now() - make_interval(secs => %(again_s)s))"
)
_IS_OLD = "id < uuid7_floor(mizan_now() - make_interval(secs => %(patience_s)s))"

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

# Ids are looked up between the first and the last of them, so that only the months that they are of are searched. What
# the webhook service takes in at this moment is left to it.
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
        self._rounds = RequeueSweep(_PendingEvents(database, kafka, thresholds), thresholds, OLDEST_PENDING)

    def run_once(self) -> float:
        """A batch at most."""
        return self._rounds.step()[1]

    def close(self) -> None:
        """The database belongs to the process."""


class _PendingEvents:
    """Events that merchants are to be told of, the oldest first. Their ids tell their age."""

    def __init__(self, database: Database, kafka: KafkaSettings, thresholds: RequeueThresholds) -> None:
        self._database = database
        self._backlog = TopicBacklog(kafka, (PAYMENT_INTENT_EVENTS,))
        self._thresholds = thresholds

    def look(self, place: UUID | None) -> SweepWindow[UUID]:
        values = {
            "id": place or UUID(int=0),
            "patience_s": self._thresholds.patience_s,
            "again_s": self._thresholds.again_s,
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
            next_place=ids[-1] if len(ids) == BATCH else newest if is_full else None,
        )

    def in_line_s(self, now: float) -> float:
        """In the outbox, or on its way behind it. In this order, for rows move from the one to the other."""
        with self._database.cursor() as cursor:
            in_outbox_s = float(fetch_scalar(cursor, OLDEST_IN_OUTBOX_SQL))
        return max(in_outbox_s, self._backlog.oldest_s(now))

    def put_back(self, ids: Sequence[UUID], patience_s: float) -> int:
        values = {
            "ids": list(ids),
            "first": min(ids),
            "last": max(ids),
            "patience_s": patience_s,
            "again_s": self._thresholds.again_s,
        }
        with in_index_order(self._database) as cursor:
            republished = int(fetch_scalar(cursor, REQUEUE_SQL, values))
        REQUEUED.inc(republished)
        return republished


def _created_at(event_id: UUID | None) -> float | None:
    return None if event_id is None else uuid7_timestamp(str(event_id))
