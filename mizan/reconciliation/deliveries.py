"""Checks events against deliveries, and deliveries against tries: each event is delivered once, and counts match."""

from typing import Any

from psycopg import Connection

from mizan.reconciliation.checks import Findings, find_faults
from mizan.reconciliation.retention import RetainedHistory
from services.webhooks.retry_schedule import LAST_STEP
from shared.domain.audit_log import Action
from shared.domain.deliveries.try_results import EVENTS, NO_URL

# An event has no delivery if there was no URL. The audit log tells when there was one. A change counts half a minute
# later, because its entry is written a moment before it takes effect. Without any entry the URL has never changed.
UNDELIVERED_EVENTS_SQL = f"""
with changes as (
    select application_id, at, action,
           case action when '{Action.WEBHOOK_URL_SET}' then true when '{Action.WEBHOOK_URL_REMOVED}' then false
                       else details ->> 'url' is not null end as has_url,
           lead(at) over (partition by application_id order by at, id) as changed_at
    from audit_log
    where action in ('{Action.APPLICATION_CREATED}', '{Action.WEBHOOK_URL_SET}', '{Action.WEBHOOK_URL_REMOVED}')
),
with_url (application_id, since, until) as (
    select application_id,
           case action when '{Action.APPLICATION_CREATED}' then at else at + interval '30 seconds' end,
           coalesce(changed_at - interval '30 seconds', 'infinity')
    from changes join applications on applications.id = application_id
    where has_url and (changed_at is not null or webhook_url is not null)
    union all
    select id, created_at, 'infinity' from applications
    where webhook_url is not null and not exists (select from changes where application_id = applications.id)
)
select 'events_delivered' as name, e.id::text,
       format('%%s of intent %%s, taken in at %%s', type, uuid, taken_in_at) as detail
from intent_events as e
join payment_intents on uuid = intent_uuid
join with_url on with_url.application_id = payment_intents.application_id
     and taken_in_at >= with_url.since and taken_in_at < with_url.until
where e.id >= %(since)s and type = any(%(event_types)s)
  and not exists (select from webhook_deliveries as d where d.id = e.id)"""

MISMATCHED_DELIVERIES_SQL = """
select 'delivery_has_event' as name, d.id::text,
       format('delivery of %%s of intent %%s; its event: %%s', d.event, d.intent_uuid,
              case when e.id is null then 'none'
                   when e.taken_in_at is null then 'not taken in'
                   when i.application_id is distinct from d.application_id then 'of another application'
                   else e.type || ' of intent ' || e.intent_uuid end) as detail
from webhook_deliveries as d
left join intent_events as e on e.id = d.id
left join payment_intents as i on i.uuid = d.intent_uuid
where not d.is_test and d.id >= %(since)s
  and (e.id is null or e.taken_in_at is null or e.type <> d.event or e.intent_uuid <> d.intent_uuid
       or i.application_id is distinct from d.application_id or d.event <> all(%(event_types)s))"""

DUPLICATE_DELIVERIES_SQL = """
select 'deliveries_once' as name, max(id::text) as id,
       format('%s deliveries of %s of intent %s', count(*), event, intent_uuid) as detail
from webhook_deliveries where not is_test group by intent_uuid, event having count(*) > 1"""

# Steps are compared as bits, so that a repeated step cannot hide a missing one. A delivery that succeeded by a resend,
# or ended because there was no URL, is at a step that was not tried.
TRIES_SQL = f"""
with tallies as (
    select delivery_id, count(*) as tries, max(number) as last, count(step) as steps,
           coalesce(bit_or(1 << step), 0) as step_bits, count(resend_id) as resends,
           coalesce(bool_or(status_code between 200 and 299), false) as has_success
    from webhook_tries where delivery_id >= %(since)s group by delivery_id
),
stored as (
    select id, status, tries, step, last_failure, is_test from webhook_deliveries where id >= %(since)s
),
compared as (
    select coalesce(id, delivery_id) as id, stored.id is null as is_stray, is_test, status, step, last_failure,
           stored.tries as counted, coalesce(tallies.tries, 0) as tries, coalesce(last, 0) as last,
           coalesce(steps, 0) as steps, coalesce(step_bits, 0) as step_bits, coalesce(resends, 0) as resends,
           coalesce(has_success, false) as has_success
    from stored full join tallies on delivery_id = id
)
select case when is_stray then 'tries_complete'
            when is_test then null
            when tries > counted or tries > last or steps > bit_count(step_bits::bit(32)) then 'tries_once'
            when tries < counted or tries < last or step_bits <> (1 << steps::integer + 1) - 2 then 'tries_complete'
            when case status
                when 'pending' then not has_success and steps = step - 1
                when 'succeeded' then has_success and steps in (step - 1, step)
                else not has_success and (steps = {LAST_STEP} or steps = step - 1
                                          and (last_failure = '{NO_URL}' or resends > 0)) end is not true
            then 'delivery_fits_tries' end as name,
       id::text,
       format('delivery %%s at step %%s; %%s tries counted, %%s stored, up to number %%s, %%s on schedule, '
              '%%s resends, %%s',
              coalesce(status, 'missing'), step, counted, tries, last, steps, resends,
              case when has_success then 'one succeeded' else 'none succeeded' end) as detail
from compared"""


def check_deliveries(connection: Connection[Any], retained: RetainedHistory) -> Findings:
    event_types = [str(event) for event in EVENTS]
    return (
        find_faults(connection, UNDELIVERED_EVENTS_SQL, {"since": retained.both, "event_types": event_types})
        .merge(
            find_faults(
                connection, MISMATCHED_DELIVERIES_SQL, {"since": retained.both, "event_types": event_types}
            )
        )
        .merge(find_faults(connection, DUPLICATE_DELIVERIES_SQL))
    )


def check_tries(connection: Connection[Any], retained: RetainedHistory) -> Findings:
    return find_faults(connection, TRIES_SQL, {"since": retained.deliveries})
