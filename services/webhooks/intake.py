"""Intake: creates one delivery for each event that merchants receive, and publishes it for its first try.

A record only says which event to look at. Its application, intent and type are read from the database, and a record
that says something else goes to the dead letters: whoever can write to Kafka must not choose who receives an event.

One statement writes the delivery and `taken_in_at`. After a crash before the delivery is published, the event is read
again. Its delivery is still at the first step then, and is published again.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Cursor

from services.webhooks.metrics import QUEUED
from services.webhooks.outgoing import publish, to_deliver
from services.webhooks.pipeline.queries import REPLAN_AFTER_S
from shared.domain.deliveries.try_results import EVENTS
from shared.domain.messages import DeliveryDue, IntentEvent
from shared.platform.database.pool import Database
from shared.platform.database.prepared_statements import PreparedStatement, Row
from shared.platform.database.stable_plans import element_sql, key_array, text_array
from shared.platform.kafka.producer import ConfirmingProducer
from shared.platform.kafka.records import Record, Task
from shared.platform.kafka.spans import trace_processing

WEBHOOK_EVENT_TYPES = frozenset(EVENTS)

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


def application_of(task: Task) -> UUID | None:
    """Return whose event it is: the applications take turns, so that a burst of one does not hold up the others."""
    if task.poison_reason is not None or not isinstance(task.message, IntentEvent):
        return None
    return task.message.application_id


class Intake:
    """Handles batches of payment_intents.events."""

    def __init__(self, database: Database, producer: ConfirmingProducer) -> None:
        self._database = database
        self._producer = producer

    def handle(self, tasks: Sequence[Task]) -> None:
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
        """Return the events that merchants receive, each once, sorted by id. Rejects records that are not true."""
        claimed = [
            (task.message, task)
            for task in tasks
            if isinstance(task.message, IntentEvent) and task.message.type in WEBHOOK_EVENT_TYPES
        ]
        if not claimed:
            return []
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
