"""Requeues deliveries on webhooks.deliver: those so long overdue that their record must be lost, and those that were
set aside while their application was paused, once it is resumed."""

from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from time import monotonic
from uuid import UUID

from prometheus_client import Counter, Gauge

from services.scheduler.requeue_sweep import (
    BATCH,
    PAUSE_AFTER_BATCH_S,
    WINDOW,
    RequeueSweep,
    RequeueThresholds,
    SweepWindow,
)
from services.scheduler.topic_backlog import TopicBacklog
from shared.domain.topics import PAYMENT_INTENT_EVENTS, WEBHOOKS_DELAY, WEBHOOKS_DELIVER, WEBHOOKS_SLOW
from shared.platform.database.pool import Database, fetch_scalar
from shared.platform.database.stable_plans import in_index_order
from shared.platform.settings import KafkaSettings

REQUEUED = Counter("mizan_webhook_requeued", "Overdue deliveries that were requeued")
RESUMED = Counter(
    "mizan_webhook_resumed", "Set-aside deliveries requeued after their application was resumed"
)
OVERDUE = Gauge(
    "mizan_webhook_overdue_seconds",
    "How overdue the most overdue pending delivery is, without paused applications",
)

SweepPosition = tuple[datetime, UUID]
_FIRST_POSITION: SweepPosition = (datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))
_NO_APPLICATION = UUID(int=0)

_IS_NOT_PAUSED = """
(select webhooks_paused_at from applications where applications.id = {0}.application_id) is null"""
_NOT_REQUEUED_RECENTLY = (
    "(requeued_at is null or requeued_at <= mizan_now() - make_interval(secs => %(requeue_interval_s)s))"
)
_MAY_BE_REQUEUED = f"status = 'pending' and set_aside_at is null and {_NOT_REQUEUED_RECENTLY}"
_IS_OVERDUE = "next_due_at < mizan_now() - make_interval(secs => %(min_overdue_s)s)"

FIND_OVERDUE_SQL = f"""
with ahead as materialized (
    select id, application_id, next_due_at, requeued_at, set_aside_at from webhook_deliveries
    where status = 'pending' and next_due_at >= %(due)s and (next_due_at, id) > (%(due)s, %(id)s)
      and next_due_at <= mizan_now()
    order by next_due_at, id limit {WINDOW}
),
going as materialized (
    select id, next_due_at, set_aside_at is null and {_NOT_REQUEUED_RECENTLY} and {_IS_OVERDUE} as may_go
    from ahead where {_IS_NOT_PAUSED.format("ahead")}
),
chosen as materialized (
    select id, next_due_at from going where may_go order by next_due_at, id limit {BATCH}
),
reached as (
    (select next_due_at, id from chosen order by next_due_at, id offset {BATCH - 1} limit 1)
    union all
    (select next_due_at, id from ahead order by next_due_at, id offset {WINDOW - 1} limit 1)
    order by next_due_at, id limit 1
)
select mizan_now(), (select min(next_due_at) from going), array(select id from chosen order by id),
       (select min(next_due_at) from chosen), (select max(next_due_at) from ahead),
       (select next_due_at from reached), (select id from reached)"""

# The range from the first to the last id limits the search to the monthly partitions that hold them. Rows locked by
# others, such as the webhook service while it records a try, are left to the next sweep.
_LOCKED = """
id between %(first)s and %(last)s and id = any(array(
    select id from webhook_deliveries
    where id between %(first)s and %(last)s and id = any(%(ids)s) and {0}
    order by id for no key update skip locked))"""
_QUEUE = f"""
queued as (
    insert into outbox (topic, key, payload)
    select '{WEBHOOKS_DELIVER.name}', application_id,
           delivery_due_message(id, application_id, step, next_due_at)
    from requeued where is_due
)"""

REQUEUE_SQL = f"""
with requeued as (
    update webhook_deliveries set requeued_at = mizan_now()
    where {_LOCKED.format(f"{_MAY_BE_REQUEUED} and {_IS_OVERDUE}")}
    returning id, application_id, step, next_due_at, true as is_due
),
{_QUEUE}
select count(*) from requeued"""

# A loose index scan: it jumps from one application to the next, however many deliveries each has set aside.
_NEXT_APPLICATION = """
(select application_id from webhook_deliveries
 where set_aside_at is not null and application_id > {0} order by application_id limit 1)"""
FIND_RESUMED_SQL = f"""
with recursive holding (application_id) as (
    select {_NEXT_APPLICATION.format("%(after)s")}
    union all
    select {_NEXT_APPLICATION.format("holding.application_id")} from holding where application_id is not null
)
select holding.application_id, set_aside.id
from holding
cross join lateral (select id from webhook_deliveries
                    where application_id = holding.application_id and set_aside_at is not null
                    order by id limit {BATCH}) as set_aside
where holding.application_id is not null and {_IS_NOT_PAUSED.format("holding")}
limit {BATCH}"""

# A delivery that was resent or moved on meanwhile is no longer due: it is only no longer set aside.
_STILL_DUE = "status = 'pending' and next_due_at <= mizan_now()"
REQUEUE_RESUMED_SQL = f"""
with requeued as (
    update webhook_deliveries
    set set_aside_at = null, requeued_at = case when {_STILL_DUE} then mizan_now() else requeued_at end
    where {_LOCKED.format("set_aside_at is not null")}
    returning id, application_id, step, next_due_at, {_STILL_DUE} as is_due
),
{_QUEUE}
select count(*), count(*) filter (where is_due) from requeued"""


class DeliveryRequeue:
    name = "requeue-deliveries"

    def __init__(
        self, database: Database, kafka: KafkaSettings, thresholds: RequeueThresholds | None = None
    ) -> None:
        thresholds = thresholds or RequeueThresholds()
        overdue = RequeueSweep(_OverdueDeliveries(database, kafka, thresholds), thresholds, OVERDUE)
        resumed = _ResumedDeliveries(database, thresholds)
        self._steps: deque[Callable[[], tuple[int, float]]] = deque([overdue.step, resumed.step])

    def run_once(self) -> float:
        """Requeue one batch at most. Overdue and resumed deliveries take turns at being first."""
        self._steps.rotate()
        pauses = []
        for step in self._steps:
            requeued, pause_s = step()
            if requeued:
                return PAUSE_AFTER_BATCH_S
            pauses.append(pause_s)
        return min(pauses)

    def close(self) -> None:
        """The process closes the database."""


class _OverdueDeliveries:
    """The due deliveries, the most overdue first, as a source for the requeue sweep."""

    def __init__(self, database: Database, kafka: KafkaSettings, thresholds: RequeueThresholds) -> None:
        self._database = database
        self._backlog = TopicBacklog(
            kafka, (PAYMENT_INTENT_EVENTS, WEBHOOKS_DELIVER, WEBHOOKS_SLOW, *WEBHOOKS_DELAY)
        )
        self._thresholds = thresholds

    def read_window(self, position: SweepPosition | None) -> SweepWindow[SweepPosition]:
        due, delivery_id = position or _FIRST_POSITION
        values = {
            "due": due,
            "id": delivery_id,
            "min_overdue_s": self._thresholds.min_overdue_s,
            "requeue_interval_s": self._thresholds.requeue_interval_s,
        }
        with in_index_order(self._database) as cursor:
            row = cursor.execute(FIND_OVERDUE_SQL, values).fetchone()
        assert row is not None
        now, oldest, ids, oldest_id, newest, last_due, last_id = row
        return SweepWindow(
            now=now.timestamp(),
            oldest=_timestamp(oldest),
            ids=ids,
            oldest_id=_timestamp(oldest_id),
            newest=_timestamp(newest),
            next_position=None if last_id is None else (last_due, last_id),
        )

    def backlog_age_s(self, now: float) -> float:
        return self._backlog.oldest_age_s(now)

    def requeue(self, ids: Sequence[UUID], min_overdue_s: float) -> int:
        values = {
            **_id_range(ids),
            "min_overdue_s": min_overdue_s,
            "requeue_interval_s": self._thresholds.requeue_interval_s,
        }
        with in_index_order(self._database) as cursor:
            requeued = int(fetch_scalar(cursor, REQUEUE_SQL, values))
        REQUEUED.inc(requeued)
        return requeued


class _ResumedDeliveries:
    """Deliveries set aside while their application was paused, taken from all resumed applications in turn."""

    def __init__(self, database: Database, thresholds: RequeueThresholds) -> None:
        self._database = database
        self._poll_interval_s = thresholds.poll_interval_s
        self._next_at = float("-inf")
        self._after = _NO_APPLICATION

    def step(self) -> tuple[int, float]:
        """Requeue one batch. Return how many are no longer set aside, and the seconds until the next call."""
        pause_s = self._next_at - monotonic()
        if pause_s > 0:
            return 0, pause_s
        found = self._find()
        self._after = found[-1][0] if len(found) == BATCH else _NO_APPLICATION
        requeued = self._requeue([delivery_id for _, delivery_id in found]) if found else 0
        if found:
            return requeued, PAUSE_AFTER_BATCH_S
        self._next_at = monotonic() + self._poll_interval_s
        return 0, self._poll_interval_s

    def _find(self) -> list[tuple[UUID, UUID]]:
        """Return (application, delivery) pairs, from the application after the last batch on, wrapping around."""
        with in_index_order(self._database) as cursor:
            found = cursor.execute(FIND_RESUMED_SQL, {"after": self._after}).fetchall()
            if len(found) < BATCH and self._after != _NO_APPLICATION:
                others = cursor.execute(FIND_RESUMED_SQL, {"after": _NO_APPLICATION}).fetchall()
                found += [row for row in others if row[0] <= self._after]
        return found[:BATCH]

    def _requeue(self, ids: Sequence[UUID]) -> int:
        with in_index_order(self._database) as cursor:
            row = cursor.execute(REQUEUE_RESUMED_SQL, _id_range(ids)).fetchone()
        assert row is not None
        RESUMED.inc(row[1])
        return int(row[0])


def _id_range(ids: Sequence[UUID]) -> dict[str, object]:
    return {"ids": list(ids), "first": min(ids), "last": max(ids)}


def _timestamp(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
