"""Intents and their events: each change is written down once, and together they tell how the intent came to stand."""

from typing import Any

from psycopg import Connection

from mizan.audit.asking import look_for
from mizan.audit.checks import Found
from mizan.audit.kept import Kept
from shared.domain.intents.states import TRANSITIONS, IntentStatus, event_type_for
from shared.platform.uuids import uuid7_datetime

# An intent whose first months are dropped is told of from some event on. One that has changed since, a day of grace
# for clocks that differ, has at least the last.
FAULTS = """
with told as (
    select intent_uuid, seq, type, lag(seq) over story as seq_before, lag(type) over story as type_before,
           lead(seq) over story is null as is_last
    from intent_events window story as (partition by intent_uuid order by seq)
),
stories as (
    select intent_uuid, count(*) filter (where seq is distinct from seq_before) as changes,
           count(*) filter (where seq = seq_before) as repeats, min(seq) as first, max(seq) as last,
           count(*) filter (where type = 'payment_intent.succeeded') as succeeded,
           count(*) filter (where type = 'payment_intent.canceled') as canceled,
           max(type) filter (where is_last) as last_type,
           max(type_before || ' then ' || type)
               filter (where seq = seq_before + 1 and type_before || ' then ' || type <> all(%(steps)s)) as misstep
    from told group by intent_uuid
)
select case when i.uuid is null then 'events_of_intents'
            when s.repeats > 0 or s.succeeded > 1 or s.canceled > 1 then 'events_once'
            when s.intent_uuid is null then
                case when i.uuid >= %(since)s or i.updated_at >= %(begun)s + interval '1 day'
                     then 'events_complete' end
            when s.last <> i.event_seq or s.changes <> s.last - s.first + 1 or i.uuid >= %(since)s and s.first <> 1
                then 'events_complete'
            when i.status || ': ' || s.last_type <> all(%(endings)s) then 'events_fit_status'
            when s.misstep is not null then 'events_in_order' end as name,
       coalesce(i.uuid, s.intent_uuid)::text as id,
       format('intent %%s after %%s changes; %%s events told, %%s of them repeats, the last: %%s%%s',
              coalesce(i.status, 'unknown'), coalesce(i.event_seq, 0), coalesce(s.changes + s.repeats, 0),
              coalesce(s.repeats, 0), coalesce(s.last_type, 'none'), '; ' || s.misstep) as detail
from payment_intents as i full join stories as s on s.intent_uuid = i.uuid"""


def look_at_stories(connection: Connection[Any], kept: Kept) -> Found:
    values = {
        "since": kept.events,
        "begun": uuid7_datetime(kept.events),
        "steps": list(steps()),
        "endings": list(endings()),
    }
    return look_for(connection, FAULTS, values)


def steps() -> set[str]:
    """Which event may follow which."""
    return {
        f"{told_before} then {event_type_for(before, after)}"
        for (before, _), after in TRANSITIONS.items()
        if before is not None and before is not after
        for told_before in _events_of(before)
    }


def endings() -> set[str]:
    """Which event may be the last of an intent in which status."""
    return {f"{state}: {told}" for state in IntentStatus for told in _events_of(state)}


def _events_of(state: IntentStatus) -> set[str]:
    """By which an intent comes to stand so."""
    return {
        str(event)
        for (before, _), after in TRANSITIONS.items()
        if after is state and (event := event_type_for(before, after)) is not None
    }
