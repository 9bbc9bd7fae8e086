"""Intake: creates one delivery for each event that merchants receive.

A record only says which event to look at. Its application, intent and type are compared with the database, and a record
that says something else goes to the dead letters: whoever can write to Kafka must not choose who receives an event.

One statement writes the delivery and `taken_in_at`. The record of the event is done when its first try is recorded:
after a crash before that, the event is read again, and its delivery is still at the first step then.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from psycopg import Cursor

from services.webhooks.metrics import QUEUED
from services.webhooks.pipeline.next_action import Reject
from services.webhooks.pipeline.queries import REPLAN_AFTER_S, DeliveryState, parse_delivery
from services.webhooks.pipeline.tries import TryInProgress, TryKey
from shared.domain.messages import IntentEvent
from shared.platform.database.prepared_statements import PreparedStatement
from shared.platform.database.stable_plans import among_keys_sql, element_sql, key_array, text_array
from shared.platform.kafka.spans import trace_processing

FETCH_EVENTS_SQL = f"""
select e.id, e.intent_uuid, i.application_id, e.seq, e.type
from intent_events as e
cross join lateral (select application_id from payment_intents where uuid = e.intent_uuid offset 0) as i
where {among_keys_sql("e.id")}"""
_FETCH_EVENTS = PreparedStatement(FETCH_EVENTS_SQL, REPLAN_AFTER_S)

# $1 the sorted ids; what the record says of each event: $2 intent, $3 application, $4 seq, $5 type. Only for events
# that are as their record says, and were not taken in before. If the application had no URL then, a URL that is set
# later does not count (§6.1). The columns are those of FETCH_DELIVERIES_SQL.
CREATE_DELIVERIES_SQL = f"""
with taken as (
    update intent_events as e set taken_in_at = mizan_now()
    where {among_keys_sql()} and taken_in_at is null
      and intent_uuid = {element_sql("$2::uuid[]")}
      and seq::text = {element_sql("$4::text[]")}
      and type = {element_sql("$5::text[]")}
      and exists (select from payment_intents
                  where uuid = e.intent_uuid and application_id = {element_sql("$3::uuid[]", "e.id")} offset 0)
    returning id, intent_uuid, type, {element_sql("$3::uuid[]")} as application_id
),
created as (
    insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, next_due_at)
    select taken.id, taken.intent_uuid, taken.application_id, taken.type, a.webhook_url, a.webhook_secret_version,
           mizan_now()
    from taken
    cross join lateral (select webhook_url, webhook_secret_version from applications
                        where id = taken.application_id and webhook_url is not null offset 0) as a
    on conflict (id) do nothing
    returning id, application_id, intent_uuid, event, status, step, next_due_at, url, secret_version
)
select id, application_id, intent_uuid, event, status, step, next_due_at, url, secret_version, url, secret_version,
       (select webhooks_paused_at is not null from applications where id = created.application_id), 0, false
from created"""
_CREATE_DELIVERIES = PreparedStatement(CREATE_DELIVERIES_SQL, REPLAN_AFTER_S)


def take_in(
    cursor: Cursor[Any], tries: Sequence[TryInProgress]
) -> tuple[dict[str, DeliveryState], dict[TryKey, Reject]]:
    """Create the deliveries of the events that request these first tries.

    Returns the new deliveries by id, and which tries to reject. A delivery that is in neither was created before, or
    its application has no URL.
    """
    with trace_processing([one.tasks[0].record for one in tries]) as traces:
        for one, trace in zip(tries, traces, strict=True):
            one.trace = trace
        created = create_deliveries(cursor, [_event(one) for one in tries])
        if len(created) == len(tries):
            return created, {}
        stored = _fetch_stored(cursor, {one.delivery_id for one in tries})
        is_true = {one.key: _columns(_event(one)) in stored for one in tries}
        rejected = {
            one.key: Reject(
                f"the database has no event {one.delivery_id} with this application, intent, seq and type"
            )
            for one in tries
            if not is_true[one.key]
        }
        if rejected:  # one of them may have had the id of a true event in this batch
            created |= create_deliveries(cursor, [_event(one) for one in tries if is_true[one.key]])
        return created, rejected


def create_deliveries(cursor: Cursor[Any], events: Sequence[IntentEvent]) -> dict[str, DeliveryState]:
    """Create the deliveries of these events and return them by id, without those that were taken in before.

    Nothing is created for an event that differs from the database. Of several with one id, only one is looked at.
    """
    claims = {str(event.id): event for event in events}
    ids = sorted(claims)
    claimed = [claims[each] for each in ids]
    values = [
        key_array(ids),
        text_array(str(event.intent_uuid) for event in claimed),
        text_array(str(event.application_id) for event in claimed),
        text_array(str(event.seq) for event in claimed),
        text_array(event.type for event in claimed),
    ]
    created = [parse_delivery(row) for row in _CREATE_DELIVERIES.fetch_all(cursor, values)]
    QUEUED.inc(len(created))
    return {delivery.id: delivery for delivery in created}


def _fetch_stored(cursor: Cursor[Any], ids: AbstractSet[str]) -> set[tuple[str, ...]]:
    rows = _FETCH_EVENTS.fetch_all(cursor, [key_array(sorted(ids))])
    return {tuple(str(value, "ascii") for value in row if value is not None) for row in rows}


def _columns(event: IntentEvent) -> tuple[str, ...]:
    """Return the event as a row of FETCH_EVENTS_SQL."""
    return (
        str(event.id),
        str(event.intent_uuid),
        str(event.application_id),
        str(event.seq),
        str(event.type),
    )


def _event(one: TryInProgress) -> IntentEvent:
    assert one.event is not None
    return one.event
