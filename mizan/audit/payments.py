"""Intents and their attempts: paid and succeeded, under way and processing go together, and nothing is paid twice."""

from typing import Any

from psycopg import Connection

from mizan.audit.asking import look_for
from mizan.audit.checks import Found

# An intent that was paid while another attempt was under way stays succeeded until that one is settled too.
FAULTS = """
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


def look_at_payments(connection: Connection[Any]) -> Found:
    return look_for(connection, FAULTS)
