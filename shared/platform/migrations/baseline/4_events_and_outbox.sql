-- The log of what happened to intents, and the outbox that carries messages to Kafka.

-- Partitioned by month of the id, a uuid v7, like webhook_deliveries and webhook_tries: old months are dropped, never
-- deleted row by row.
create table intent_events (
    id              uuid primary key default uuidv7(),
    intent_uuid     uuid not null,
    seq             integer not null,
    type            text not null check (type like 'payment_intent.%'),
    at              timestamptz not null,
    taken_in_at     timestamptz,
    republished_at  timestamptz
) partition by range (id);
comment on column intent_events.taken_in_at is 'when the webhook service created its delivery, or found no URL';
comment on column intent_events.republished_at is 'when it was last published again because it was not taken in';
create index intent_events_by_intent on intent_events (intent_uuid, seq);
create index intent_events_not_taken_in on intent_events (id)
    where taken_in_at is null and type in ('payment_intent.succeeded', 'payment_intent.canceled');

-- The relay deletes what it has published, so this table is short and busy: vacuum it early and at full speed.
create table outbox (
    id          bigint generated always as identity primary key,
    topic       text not null,
    key         text not null,
    payload     text not null,
    created_at  timestamptz not null default statement_timestamp(),
    trace       text
) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000
);
comment on column outbox.trace is 'W3C traceparent, sent as a header of the record';

-- Encoders of shared.domain.messages, for statements that write many outbox rows at once.
create function intent_event_message(
    id uuid, intent_uuid uuid, application_id uuid, seq integer, type text, at timestamptz) returns text
    language sql stable parallel safe
    return json_build_object('kind', 'intent_event.v1', 'id', id, 'intent_uuid', intent_uuid,
                             'application_id', application_id, 'seq', seq, 'type', type, 'at', at)::text;

create function delivery_due_message(id uuid, application_id uuid, step integer, due_at timestamptz) returns text
    language sql stable parallel safe
    return json_build_object('kind', 'delivery_due.v1', 'id', id, 'application_id', application_id,
                             'step', step, 'due_at', due_at)::text;

create function resend_requested_message(id uuid, delivery_id uuid, application_id uuid) returns text
    language sql stable parallel safe
    return json_build_object('kind', 'resend_requested.v1', 'id', id, 'delivery_id', delivery_id,
                             'application_id', application_id)::text;
