"""Finds what is overdue by the database's clock, and counts what waits within its time."""

from typing import Any

from psycopg import Connection

from mizan.reconciliation.checks import Findings, find_faults
from shared.domain.attempts.decision_proposals import IS_CURRENT_SQL
from shared.domain.audit_log import Action

# Deliveries that fell due while their application was paused are due from the time it was resumed.
STUCK_SQL = f"""
select 'intents_expire' as name, uuid::text as id, format('expired at %s', expires_at) as detail
from payment_intents
where status = 'requires_payment_method' and expires_at < mizan_now() - interval '1 minute'
union all
select 'attempts_asked', id::text, format('attempt %s of intent %s, to be asked about at %s', state, intent_uuid, next_verify_at)
from payment_attempts
where state in ('sent', 'unknown') and next_verify_at < mizan_now() - interval '5 minutes'
union all
select 'outbox_leaves', id::text, format('for %s, key %s, since %s', topic, key, created_at)
from outbox where created_at < statement_timestamp() - interval '5 minutes'
union all
select 'events_taken_in', id::text, format('%s of intent %s, of %s', type, intent_uuid, at)
from intent_events
where taken_in_at is null and type in ('payment_intent.succeeded', 'payment_intent.canceled')
  and at < mizan_now() - interval '30 minutes'
union all
select 'deliveries_tried', d.id::text, format('step %s of application %s, due at %s', step, application_id, next_due_at)
from webhook_deliveries as d join applications as a on a.id = application_id
where next_due_at < mizan_now() - interval '30 minutes' and webhooks_paused_at is null and not is_test
  and not exists (select from audit_log where action = '{Action.WEBHOOKS_RESUMED}'
                  and audit_log.application_id = d.application_id and at > mizan_now() - interval '30 minutes')"""  # noqa: E501

WAITING_SQL = f"""
select 'outbox_rows', count(*) from outbox
union all
select 'events_not_taken_in', count(*) from intent_events
where taken_in_at is null and type in ('payment_intent.succeeded', 'payment_intent.canceled')
union all
select 'deliveries_pending', count(*) filter (where webhooks_paused_at is null)
from webhook_deliveries join applications on applications.id = application_id
where next_due_at is not null and not is_test
union all
select 'deliveries_paused', count(*) filter (where webhooks_paused_at is not null)
from webhook_deliveries join applications on applications.id = application_id
where next_due_at is not null and not is_test
union all
select 'attempts_under_way', count(*) from payment_attempts
where state in ('sent', 'unknown') and next_verify_at is not null
union all
select 'attempts_undecided', count(*) from payment_attempts where state = 'unknown' and next_verify_at is null
union all
select 'attempts_left_on_a_page', count(*) from payment_attempts
where state = 'awaiting_redirect' and created_at < mizan_now() - interval '15 minutes'
union all
select 'decisions_to_approve', count(*) from decision_proposals as p
join payment_attempts as t on t.id = p.attempt_id and {IS_CURRENT_SQL}
where p.ended_as is null
union all
select 'duplicate_payments', count(*) from payment_attempts where state = 'duplicate' and handled_at is null"""


def find_stuck(connection: Connection[Any]) -> Findings:
    return find_faults(connection, STUCK_SQL)


def count_waiting(connection: Connection[Any]) -> dict[str, int]:
    """Count what still waits for a service, a merchant or an operator and is not overdue."""
    return dict(connection.execute(WAITING_SQL).fetchall())
