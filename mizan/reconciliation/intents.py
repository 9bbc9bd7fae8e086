"""Checks intents against their attempts and against their event history.

A succeeded intent has exactly one paid attempt, a processing one an attempt in progress. Every change of an intent has
one event, and the events lead to its status.
"""

from typing import Any

from psycopg import Connection

from mizan.reconciliation.checks import Findings, find_faults
from mizan.reconciliation.retention import RetainedHistory
from shared.domain.intents.states import TRANSITIONS, IntentStatus, event_type_for
from shared.platform.uuids import uuid7_datetime

# An intent that was paid while another attempt was under way stays succeeded until that one is settled too.
ATTEMPT_FAULTS_SQL = """
with tallies as (
    select intent_uuid, count(*) filter (where state = 'paid') as paid,
           count(*) filter (where state = 'duplicate') as duplicates,
           count(*) filter (where state in ('sent', 'unknown')) as under_way,
           count(*) filter (where state in ('awaiting_code', 'awaiting_redirect')) as awaiting
    from payment_attempts group by intent_uuid
)
select case when paid > 1 then 'paid_once'
            when under_way + awaiting > 1 then 'one_open_attempt'
            when status = 'succeeded' and coalesce(paid, 0) = 0 then 'succeeded_is_paid'
            when status <> 'succeeded' and paid + duplicates > 0 then 'paid_is_succeeded'
            when status = 'processing' and coalesce(under_way, 0) = 0 then 'processing_has_attempt'
            when status in ('requires_payment_method', 'canceled') and under_way > 0 then 'attempt_is_processing'
       end as name,
       uuid::text as id,
       format('intent %s; attempts: %s paid, %s duplicate, %s under way, %s awaiting the customer', status,
              coalesce(paid, 0), coalesce(duplicates, 0), coalesce(under_way, 0), coalesce(awaiting, 0)) as detail
from payment_intents left join tallies on intent_uuid = uuid"""


def check_attempts(connection: Connection[Any]) -> Findings:
    return find_faults(connection, ATTEMPT_FAULTS_SQL)


# The history of an intent whose first months are dropped starts at a later event. An intent that changed since then
# (with a day of grace for clocks that differ) has at least its last event.
EVENT_FAULTS_SQL = """
with ordered as (
    select intent_uuid, seq, type, lag(seq) over history as seq_before, lag(type) over history as type_before,
           lead(seq) over history is null as is_last
    from intent_events window history as (partition by intent_uuid order by seq)
),
histories as (
    select intent_uuid, count(*) filter (where seq is distinct from seq_before) as changes,
           count(*) filter (where seq = seq_before) as repeats, min(seq) as first, max(seq) as last,
           count(*) filter (where type = 'payment_intent.succeeded') as succeeded,
           count(*) filter (where type = 'payment_intent.canceled') as canceled,
           max(type) filter (where is_last) as last_type,
           max(type_before || ' then ' || type)
               filter (where seq = seq_before + 1 and type_before || ' then ' || type <> all(%(allowed)s)) as bad_order
    from ordered group by intent_uuid
)
select case when i.uuid is null then 'events_of_intents'
            when s.repeats > 0 or s.succeeded > 1 or s.canceled > 1 then 'events_once'
            when s.intent_uuid is null then
                case when i.uuid >= %(since)s or i.updated_at >= %(retained_since)s + interval '1 day'
                     then 'events_complete' end
            when s.last <> i.event_seq or s.changes <> s.last - s.first + 1 or i.uuid >= %(since)s and s.first <> 1
                then 'events_complete'
            when i.status || ': ' || s.last_type <> all(%(last_events)s) then 'events_fit_status'
            when s.bad_order is not null then 'events_in_order' end as name,
       coalesce(i.uuid, s.intent_uuid)::text as id,
       format('intent %%s after %%s changes; %%s events stored, %%s of them repeats, the last: %%s%%s',
              coalesce(i.status, 'unknown'), coalesce(i.event_seq, 0), coalesce(s.changes + s.repeats, 0),
              coalesce(s.repeats, 0), coalesce(s.last_type, 'none'), '; ' || s.bad_order) as detail
from payment_intents as i full join histories as s on s.intent_uuid = i.uuid"""


def check_event_history(connection: Connection[Any], retained: RetainedHistory) -> Findings:
    values = {
        "since": retained.events,
        "retained_since": uuid7_datetime(retained.events),
        "allowed": list(allowed_successions()),
        "last_events": list(allowed_last_events()),
    }
    return find_faults(connection, EVENT_FAULTS_SQL, values)


def allowed_successions() -> set[str]:
    """Return which event may follow which, as `first then second`."""
    return {
        f"{event_before} then {event_type_for(before, after)}"
        for (before, _), after in TRANSITIONS.items()
        if before is not None and before is not after
        for event_before in _events_of(before)
    }


def allowed_last_events() -> set[str]:
    """Return which event may be the last one of an intent in each status, as `status: event`."""
    return {f"{state}: {event}" for state in IntentStatus for event in _events_of(state)}


def _events_of(state: IntentStatus) -> set[str]:
    """Return the events by which an intent gets into this state."""
    return {
        str(event)
        for (before, _), after in TRANSITIONS.items()
        if after is state and (event := event_type_for(before, after)) is not None
    }
