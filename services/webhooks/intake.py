"""Intake: creates one delivery for each event that merchants receive, and publishes it for its first try.

A record only says which event to look at. Its application, intent and type are read from the database, and a record
that says something else goes to the dead letters: whoever can write to Kafka must not choose who receives an event.

One statement writes the delivery and `taken_in_at`. After a crash before the delivery is published, the event is read
again. Its delivery is still at the first step then, and is published again.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from math import inf
from typing import Any
from uuid import UUID

from psycopg import Cursor

from services.webhooks.fair_queue import FairQueue
from services.webhooks.metrics import QUEUED
from services.webhooks.outgoing import publish, to_deliver
from services.webhooks.pipeline.queries import REPLAN_AFTER_S
from shared.domain.deliveries.try_results import EVENTS
from shared.domain.messages import DeliveryDue, IntentEvent
from shared.platform.batch_size import BatchSize
from shared.platform.database.pool import Database
from shared.platform.database.prepared_statements import PreparedStatement, Row
from shared.platform.database.stable_plans import element_sql, key_array, text_array
from shared.platform.kafka.handlers import is_transient
from shared.platform.kafka.producer import ConfirmingProducer
from shared.platform.kafka.records import AssignedPartition, Record, Task
from shared.platform.kafka.spans import trace_processing

WEBHOOK_EVENT_TYPES = frozenset(EVENTS)

_BATCH = 1000
_MAX_WAITING = 6000
"""Enough for a burst of one application, so that events of others are read meanwhile."""

_log = logging.getLogger(__name__)

FETCH_EVENTS_SQL = """
select e.id, e.intent_uuid, i.application_id, e.seq, e.type
from intent_events as e
cross join lateral (select application_id from payment_intents where uuid = e.intent_uuid offset 0) as i
where e.id = any($1::uuid[])"""
_FETCH_EVENTS = PreparedStatement(FETCH_EVENTS_SQL, REPLAN_AFTER_S)

# Only for events that were not taken in before. If the application had no URL then, a URL that is set later does not
# count (§6.1).
CREATE_DELIVERIES_SQL = f"""
with taken as (
    update intent_events set taken_in_at = mizan_now()
    where id = any($1::uuid[]) and taken_in_at is null
    returning id, intent_uuid, type, {element_sql("$2::uuid[]")} as application_id
)
insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, next_due_at)
select taken.id, taken.intent_uuid, taken.application_id, taken.type, a.webhook_url, a.webhook_secret_version,
       mizan_now()
from taken
cross join lateral (select webhook_url, webhook_secret_version from applications
                    where id = taken.application_id and webhook_url is not null offset 0) as a
on conflict (id) do nothing
returning id, application_id, next_due_at"""
_CREATE_DELIVERIES = PreparedStatement(CREATE_DELIVERIES_SQL, REPLAN_AFTER_S)
_AT_FIRST_STEP = PreparedStatement(
    """
select id, application_id, next_due_at from webhook_deliveries
where id = any($1::uuid[]) and status = 'pending' and step = 1""",
    REPLAN_AFTER_S,
)


class Intake:
    """The handler of payment_intents.events. Applications take turns; the events of each are taken in in order."""

    def __init__(self, database: Database, producer: ConfirmingProducer) -> None:
        self._database = database
        self._producer = producer
        self._waiting: FairQueue[Task] = FairQueue(_application_of)
        self._batch_size = BatchSize(_BATCH)
        self._is_blocked = False
        """The database or Kafka was away for the last batch."""

    def capacity(self) -> int:
        if self._is_blocked and len(self._waiting):
            return 0
        return max(0, _MAX_WAITING - len(self._waiting))

    def handle(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            message = task.message
            if isinstance(message, IntentEvent) and message.type in WEBHOOK_EVENT_TYPES:
                self._waiting.add(task)
            else:
                task.done()

    def poll(self, wait_s: float) -> float:  # noqa: ARG002  it waits for nothing but the database and Kafka
        """Take in a batch. Raises DatabaseUnavailableError or KafkaUnavailableError, and keeps the batch then."""
        batch = self._waiting.next_batch(self._batch_size.current)
        if not batch:
            return inf
        try:
            self._take_in(batch)
        except Exception as error:
            self._is_blocked = is_transient(error)
            if self._is_blocked:
                self._waiting.requeue(batch)
                raise
            self._split(batch, error)
        else:
            self._is_blocked = False
            self._batch_size.count_success()
            for task in batch:
                if task.poison_reason is None:
                    task.done()
                else:
                    task.requeue()
        return 0 if len(self._waiting) else inf

    def drain(self, partitions: Sequence[AssignedPartition]) -> None:
        self.discard(partitions)

    def discard(self, partitions: Sequence[AssignedPartition]) -> None:
        self._waiting.remove(lambda task: task.partition in partitions or task.partition.revoked)

    def _split(self, batch: Sequence[Task], error: Exception) -> None:
        """After a failed batch the next ones are smaller, until the event that fails is alone."""
        if len(batch) == 1:
            batch[0].requeue(error)
            return
        self._batch_size.shrink(len(batch))
        _log.warning(
            "a batch of %d failed, continuing with %d", len(batch), self._batch_size.current, exc_info=error
        )
        self._waiting.requeue(batch)

    def _take_in(self, tasks: Sequence[Task]) -> None:
        events = self._verified_events(tasks)
        if not events:
            return
        with trace_processing([record for _, record in events]) as traces:
            with self._database.cursor() as cursor:
                due = create_deliveries(cursor, [event for event, _ in events])
            trace_of = {event.id: trace for (event, _), trace in zip(events, traces, strict=True)}
            publish(self._producer, [to_deliver(delivery, trace_of[delivery.id]) for delivery in due])
        QUEUED.inc(len(due))

    def _verified_events(self, tasks: Sequence[Task]) -> list[tuple[IntentEvent, Record]]:
        """Return the events, each once, sorted by id. Rejects records that are not true."""
        claimed = [(task.message, task) for task in tasks if isinstance(task.message, IntentEvent)]
        with self._database.cursor() as cursor:
            rows = _FETCH_EVENTS.fetch_all(cursor, [text_array({str(event.id) for event, _ in claimed})])
        stored = {tuple(str(value, "ascii") for value in row if value is not None) for row in rows}
        events: dict[UUID, tuple[IntentEvent, Record]] = {}
        for event, task in claimed:
            if _columns(event) in stored:
                events[event.id] = event, task.record
            else:
                task.reject(
                    f"the database has no event {event.id} with this application, intent, seq and type"
                )
        return [events[event_id] for event_id in sorted(events)]


def _application_of(task: Task) -> str:
    assert isinstance(task.message, IntentEvent)
    return str(task.message.application_id)


def create_deliveries(cursor: Cursor[Any], events: Sequence[IntentEvent]) -> list[DeliveryDue]:
    """Create the deliveries of these events, which must be as the database has them, and sorted by id.

    Returns all deliveries of these events that wait for their first try, also those that were created before.
    """
    ids = [str(event.id) for event in events]
    rows = _CREATE_DELIVERIES.fetch_all(
        cursor, [key_array(ids), text_array(str(event.application_id) for event in events)]
    )
    if len(rows) < len(events):  # duplicates, or applications without a URL
        rows = _AT_FIRST_STEP.fetch_all(cursor, [key_array(ids)])
    return [_due(row) for row in rows]


def _columns(event: IntentEvent) -> tuple[str, ...]:
    """Return the event as a row of FETCH_EVENTS_SQL."""
    return (
        str(event.id),
        str(event.intent_uuid),
        str(event.application_id),
        str(event.seq),
        str(event.type),
    )


def _due(row: Row) -> DeliveryDue:
    delivery_id, application_id, due_at = (str(value, "ascii") for value in row if value is not None)
    return DeliveryDue(UUID(delivery_id), UUID(application_id), 1, datetime.fromisoformat(due_at))
