"""The clock, merchants and applications, intents and attempts, the event log, the outbox, deliveries."""

from alembic import op

revision = "0001"
down_revision = None

# Tests replace mizan_now() in their own databases to move time; nothing in the product can.
# statement_timestamp() is stable, so an index can be searched with it, and one statement sees one time.
CLOCK = """
create function mizan_now() returns timestamptz
    language sql stable parallel safe
    return statement_timestamp();

create function uuid7_floor(at timestamptz) returns uuid
    language sql immutable parallel safe
    return (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;
comment on function uuid7_floor is 'the smallest uuid v7 of that millisecond: a bound for ranges of ids';
"""

PEOPLE = """
create table merchants (
    id          uuid primary key default uuidv7(),
    name        text not null check (name <> ''),
    created_at  timestamptz not null default mizan_now()
);

create table applications (
    id           uuid primary key default uuidv7(),
    merchant_id  uuid not null references merchants,
    name         text not null check (name <> ''),
    created_at   timestamptz not null default mizan_now()
);
create index applications_by_merchant on applications (merchant_id);
"""

# No foreign key to applications: it would lock the application's row at every create, and an application
# is never deleted. metadata is json, not jsonb: it comes back as sent, order too.
INTENTS = """
create table payment_intents (
    uuid                  uuid primary key default uuidv7(),
    application_id        uuid not null,
    merchant_reference    text not null check (char_length(merchant_reference) <= 255),
    reference             text not null unique,
    amount                bigint not null check (amount between 1000 and 1000000000),
    currency              text not null check (currency = 'LYD'),
    status                text not null default 'requires_payment_method' check (
                              status in ('requires_payment_method', 'processing', 'succeeded', 'canceled')),
    description           text,
    customer_external_id  text,
    return_url            text,
    metadata              json,
    expires_at            timestamptz not null,
    created_at            timestamptz not null default mizan_now(),
    updated_at            timestamptz not null default mizan_now(),
    event_seq             integer not null default 1,
    unique (application_id, merchant_reference)
);
comment on column payment_intents.event_seq is 'seq of the latest intent_events row; raised under the row lock';
create index payment_intents_due on payment_intents (expires_at) where status = 'requires_payment_method';

create table payment_attempts (
    id                  uuid primary key default uuidv7(),
    intent_uuid         uuid not null references payment_intents,
    method              text not null check (method in ('card', 'sadad', 'adfali')),
    provider            text not null,
    state               text not null check (state in ('awaiting_code', 'awaiting_redirect', 'sent', 'unknown',
                                                       'paid', 'declined', 'abandoned', 'duplicate')),
    reason              text,
    provider_reference  text,
    next_verify_at      timestamptz,
    created_at          timestamptz not null default mizan_now(),
    updated_at          timestamptz not null default mizan_now()
);
comment on column payment_attempts.id is 'also the provider''s idempotency key: a repeat never charges twice';
create index payment_attempts_by_intent on payment_attempts (intent_uuid);
create unique index payment_attempts_one_under_way on payment_attempts (intent_uuid)
    where state in ('sent', 'unknown');
create index payment_attempts_to_verify on payment_attempts (next_verify_at)
    where state in ('sent', 'unknown');
"""

# The relay deletes what it has published, so this table is short and busy: vacuum it early and at full speed.
OUTBOX = """
create table outbox (
    id          bigint generated always as identity primary key,
    topic       text not null,
    key         text not null,
    payload     text not null,
    created_at  timestamptz not null default statement_timestamp()
) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000
);
"""

# The history tables are partitioned by month of their uuid v7 (of the event's id for all three).
# The default partition is a safety net: an insert never fails because a month was not made in time.
HISTORY = """
create table intent_events (
    id           uuid primary key default uuidv7(),
    intent_uuid  uuid not null,
    seq          integer not null,
    type         text not null check (type like 'payment_intent.%'),
    at           timestamptz not null,
    taken_in_at  timestamptz
) partition by range (id);
create index intent_events_by_intent on intent_events (intent_uuid, seq);
create index intent_events_not_taken_in on intent_events (id)
    where taken_in_at is null and type in ('payment_intent.succeeded', 'payment_intent.canceled');

create table webhook_deliveries (
    id              uuid primary key,
    intent_uuid     uuid not null,
    application_id  uuid not null,
    event           text not null,
    url             text not null,
    secret_version  integer not null,
    status          text not null default 'pending' check (status in ('pending', 'succeeded', 'failed')),
    tries           integer not null default 0,
    step            smallint not null default 1 check (step between 1 and 9),
    next_due_at     timestamptz,
    created_at      timestamptz not null default mizan_now(),
    updated_at      timestamptz not null default mizan_now()
) partition by range (id);
comment on column webhook_deliveries.id is 'the id of the event that it tells of';
create index webhook_deliveries_by_application on webhook_deliveries (application_id, id desc);
create index webhook_deliveries_by_intent on webhook_deliveries (intent_uuid);
create index webhook_deliveries_overdue on webhook_deliveries (next_due_at) where status = 'pending';

create table webhook_tries (
    delivery_id  uuid not null,
    number       integer not null,
    step         smallint check (step between 1 and 9),
    resend_id    uuid,
    at           timestamptz not null,
    duration_ms  integer not null,
    url          text not null,
    status_code  integer,
    failure      text,
    answer       bytea,
    primary key (delivery_id, number),
    unique (delivery_id, step),
    unique (delivery_id, resend_id)
) partition by range (delivery_id);
comment on column webhook_tries.step is 'the rung of the ladder, 1 to 9; null for a resend';

create function make_month_partitions(month date) returns void language plpgsql as $$
declare
    first timestamptz := date_trunc('month', month::timestamp) at time zone 'UTC';
    next timestamptz := (date_trunc('month', month::timestamp) + interval '1 month') at time zone 'UTC';
    parent text;
begin
    foreach parent in array array['intent_events', 'webhook_deliveries', 'webhook_tries'] loop
        execute format('create table if not exists %I partition of %I for values from (%L) to (%L)',
                       parent || to_char(month, '_YYYY_MM'), parent, uuid7_floor(first), uuid7_floor(next));
    end loop;
end $$;
comment on function make_month_partitions is 'makes the partitions of one month, where they are missing';

create table intent_events_default partition of intent_events default;
create table webhook_deliveries_default partition of webhook_deliveries default;
create table webhook_tries_default partition of webhook_tries default;
select make_month_partitions((date_trunc('month', now() at time zone 'UTC') + make_interval(months => n))::date)
from generate_series(0, 12) as n;
"""

# The encoder of shared.domain.messages.IntentEvent, for the statements that write many events at once.
MESSAGES = """
create function intent_event_message(
    id uuid, intent_uuid uuid, application_id uuid, seq integer, type text, at timestamptz) returns text
    language sql stable parallel safe
    return json_build_object('kind', 'intent_event.v1', 'id', id, 'intent_uuid', intent_uuid,
                             'application_id', application_id, 'seq', seq, 'type', type, 'at', at)::text;
"""


def upgrade() -> None:
    connection = op.get_bind().execution_options(no_parameters=True)
    for statements in (CLOCK, PEOPLE, INTENTS, OUTBOX, HISTORY, MESSAGES):
        connection.exec_driver_sql(statements)
