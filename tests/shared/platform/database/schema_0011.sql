-- What the migrations 0001 to 0011 ran, in one file: the schema that a database has before it moves to the baseline.
-- A fixture of test_migration_from_0011.py. Do not edit: it is history.

-- 0001: The clock, merchants and applications, intents and attempts, the event log, the outbox, deliveries.
create function mizan_now() returns timestamptz
    language sql stable parallel safe
    return statement_timestamp();

create function uuid7_floor(at timestamptz) returns uuid
    language sql immutable parallel safe
    return (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;
comment on function uuid7_floor is 'the smallest uuid v7 of that millisecond: a bound for ranges of ids';

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

create function intent_event_message(
    id uuid, intent_uuid uuid, application_id uuid, seq integer, type text, at timestamptz) returns text
    language sql stable parallel safe
    return json_build_object('kind', 'intent_event.v1', 'id', id, 'intent_uuid', intent_uuid,
                             'application_id', application_id, 'seq', seq, 'type', type, 'at', at)::text;

-- 0002: What an application needs to be talked to: credentials, payment methods, a webhook URL and its secrets.
create table credentials (
    id              uuid primary key default uuidv7(),
    application_id  uuid not null references applications,
    kind            text not null check (kind in ('api_key', 'access_token')),
    prefix          text not null,
    hash            bytea not null unique check (octet_length(hash) = 32),
    created_at      timestamptz not null default mizan_now(),
    last_used_at    timestamptz,
    revoked_at      timestamptz
);
comment on column credentials.prefix is 'how it begins, so that people can tell it from others';
comment on column credentials.last_used_at is 'to the minute';
create index credentials_by_application on credentials (application_id, id);

create table application_methods (
    application_id  uuid not null references applications,
    method          text not null check (method in ('card', 'sadad', 'adfali')),
    primary key (application_id, method)
);
comment on table application_methods is 'the payment methods an application has enabled';

create table webhook_secrets (
    application_id  uuid not null references applications,
    version         integer not null check (version >= 1),
    sealed          text not null,
    created_at      timestamptz not null default mizan_now(),
    primary key (application_id, version)
);
comment on column webhook_secrets.sealed is 'encrypted with a key of MIZAN_SECRET_KEYS';

alter table applications
    add column webhook_url text,
    add column webhook_secret_version integer;
comment on column applications.webhook_secret_version is 'the version that new deliveries are signed with';
alter table applications add foreign key (id, webhook_secret_version) references webhook_secrets
    deferrable initially deferred;

-- 0003: Attempts know when they were sent and when to ask for their outcome; intents are vacuumed soon.
alter table payment_attempts
    add column sendings integer not null default 0,
    add column sent_at timestamptz,
    add column verifications integer not null default 0,
    add constraint payment_attempts_sent_is_verified
        check (state <> 'sent' or next_verify_at is not null),
    add constraint payment_attempts_under_way_was_sent
        check (state not in ('sent', 'unknown') or sent_at is not null);
comment on column payment_attempts.sendings is 'how often the provider was asked to charge: once more with each code';
comment on column payment_attempts.sent_at is 'when it was last asked to';
comment on column payment_attempts.verifications is 'how often we have asked since what became of it';
create unique index payment_attempts_one_paid on payment_attempts (intent_uuid) where state = 'paid';

alter table payment_intents
    set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000,
         autovacuum_analyze_scale_factor = 0.02);
alter table payment_intents add constraint payment_intents_expire_in_our_time
    check (expires_at between '2000-01-01 00:00Z' and '9999-01-01 00:00Z') not valid;

-- 0004: Months that can be made late without harm, and the tables whose rows lapse: sessions, codes and throttles.
create function make_month_partition(parent text, month date, most_rows bigint default 200000)
returns void language plpgsql as $$
declare
    first uuid := uuid7_floor(date_trunc('month', month::timestamp) at time zone 'UTC');
    next uuid := uuid7_floor((date_trunc('month', month::timestamp) + interval '1 month') at time zone 'UTC');
    table_of_month text := parent || to_char(month, '_YYYY_MM');
    key text;
    waiting bigint;
begin
    execute format('lock table only %I in share update exclusive mode', parent);
    if exists (select from pg_inherits
               where inhrelid = to_regclass(table_of_month) and inhparent = parent::regclass) then
        return;
    end if;
    if to_regclass(table_of_month) is null then
        execute format('create table %I (like %I including all)', table_of_month, parent);
    end if;
    select attname into strict key from pg_partitioned_table
    join pg_attribute on attrelid = partrelid and attnum = partattrs[0] where partrelid = parent::regclass;
    execute format('select count(*) from (select from %1$I where %2$I >= %3$L and %2$I < %4$L limit %5$s) as strays',
                   parent || '_default', key, first, next, most_rows + 1) into waiting;
    if waiting > most_rows then
        raise exception 'more than % rows wait in %_default for %', most_rows, parent, table_of_month
            using hint = 'Moving them stops all writers for as long as it takes. docs/operations.md says how.';
    end if;
    if waiting > 0 or first <= uuidv7() then
        -- A statement that has begun would not find the moved rows, or fail to insert one: let none have begun.
        execute format('lock table only %I in access exclusive mode', parent);
        execute format('with moved as (delete from %1$I where %2$I >= %3$L and %2$I < %4$L returning *)
                        insert into %5$I select * from moved',
                       parent || '_default', key, first, next, table_of_month);
    end if;
    execute format('alter table %I attach partition %I for values from (%L) to (%L)',
                   parent, table_of_month, first, next);
end $$;
comment on function make_month_partition is
    'makes one table''s partition of one month where it is missing, or attaches again one that was detached';

create or replace function make_month_partitions(month date) returns void language plpgsql as $$
declare
    parent text;
begin
    foreach parent in array array['intent_events', 'webhook_deliveries', 'webhook_tries'] loop
        perform make_month_partition(parent, month);
    end loop;
end $$;

create table sessions (
    hash          bytea primary key check (octet_length(hash) = 32),
    person_id     uuid not null,
    created_at    timestamptz not null default mizan_now(),
    last_seen_at  timestamptz not null default mizan_now(),
    expires_at    timestamptz not null
);
comment on table sessions is 'people who are signed in';
comment on column sessions.hash is 'SHA-256 of what the browser holds';
create index sessions_by_expiry on sessions (expires_at);

create table one_time_codes (
    hash        bytea primary key check (octet_length(hash) = 32),
    purpose     text not null check (purpose <> ''),
    subject     uuid not null,
    created_at  timestamptz not null default mizan_now(),
    used_at     timestamptz,
    expires_at  timestamptz not null
);
comment on table one_time_codes is 'what can be used once: a link that was mailed, a recovery code';
comment on column one_time_codes.hash is 'SHA-256 of what the person was sent';
comment on column one_time_codes.subject is 'whom or what it is about; purpose says which';
create index one_time_codes_by_expiry on one_time_codes (expires_at);

create table login_throttles (
    key              bytea primary key check (octet_length(key) = 32),
    failures         integer not null check (failures >= 0),
    last_failure_at  timestamptz not null default mizan_now(),
    expires_at       timestamptz not null
);
comment on column login_throttles.key is 'a keyed hash of the account or the address that sign-ins failed for';
create index login_throttles_by_expiry on login_throttles (expires_at);

-- 0005: What the webhook service adds: the last answer of a delivery, pauses, and when something was put back on its way.
alter table applications add column webhooks_paused_at timestamptz;
comment on column applications.webhooks_paused_at is 'an operator has paused its webhooks; what is due is parked';

alter table webhook_deliveries
    add column last_status_code integer,
    add column last_failure text,
    add column redriven_at timestamptz,
    add column parked_at timestamptz;
comment on column webhook_deliveries.last_failure is
    'how the last try failed where there was no answer, or no_url: the application''s URL was removed';
comment on column webhook_deliveries.redriven_at is 'when it was last put back on webhooks.deliver, being overdue';
comment on column webhook_deliveries.parked_at is 'it fell due while its application was paused';
create index webhook_deliveries_parked on webhook_deliveries (application_id, id) where parked_at is not null;

-- The status is not named in the index, for a statement that asks for what is pending among some ids would be led to
-- read all that is.
alter table webhook_deliveries add constraint webhook_deliveries_due_while_pending
    check ((status = 'pending') = (next_due_at is not null));
drop index webhook_deliveries_overdue;
create index webhook_deliveries_overdue on webhook_deliveries (next_due_at, id) where next_due_at is not null;

alter table intent_events add column republished_at timestamptz;
comment on column intent_events.republished_at is 'when it was last published again, not having been taken in';

create function delivery_due_message(id uuid, application_id uuid, step integer, due_at timestamptz) returns text
    language sql stable parallel safe
    return json_build_object('kind', 'delivery_due.v1', 'id', id, 'application_id', application_id,
                             'step', step, 'due_at', due_at)::text;

create function resend_requested_message(id uuid, delivery_id uuid, application_id uuid) returns text
    language sql stable parallel safe
    return json_build_object('kind', 'resend_requested.v1', 'id', id, 'delivery_id', delivery_id,
                             'application_id', application_id)::text;

-- 0006: What the checkout adds: provider accounts, challenges for a code, providers' pages, and limits.
create table provider_accounts (
    id              uuid primary key default uuidv7(),
    application_id  uuid not null references applications,
    method          text not null check (method in ('card', 'sadad', 'adfali')),
    adapter         text not null check (adapter in ('sandbox', 'plutu')),
    sealed          text,
    created_at      timestamptz not null default mizan_now(),
    replaced_at     timestamptz
);
comment on column provider_accounts.sealed is 'its credentials, encrypted with a key of MIZAN_SECRET_KEYS';
create unique index provider_accounts_current on provider_accounts (application_id, method)
    where replaced_at is null;

alter table payment_attempts add column provider_account_id uuid references provider_accounts;
comment on column payment_attempts.provider_account_id is 'null: the sandbox of a development installation';

create table code_challenges (
    attempt_id    uuid primary key,
    continuation  text,
    phone_hint    text,
    sealed_phone  text,
    codes_sent    smallint not null default 1,
    codes_tried   smallint not null default 0,
    sent_at       timestamptz not null default mizan_now(),
    expires_at    timestamptz not null
);
comment on table code_challenges is 'attempts whose customer was sent a one-time code';
comment on column code_challenges.continuation is 'what the provider wants to see again beside the code';
comment on column code_challenges.phone_hint is 'the last digits, for the customer to recognise';
comment on column code_challenges.sealed_phone is 'phone and birth year, to send the code again';
create index code_challenges_by_expiry on code_challenges (expires_at);

create table provider_pages (
    attempt_id  uuid primary key,
    url         text not null,
    created_at  timestamptz not null default mizan_now()
);
comment on table provider_pages is 'where the customer of an attempt pays, on a page of the provider''s';

create table checkout_limits (
    key         bytea primary key check (octet_length(key) = 32),
    count       integer not null,
    expires_at  timestamptz not null
);
comment on column checkout_limits.key is 'a keyed hash of what is counted: an intent, a phone';
create index checkout_limits_by_expiry on checkout_limits (expires_at);

-- 0007: Who works for a merchant: its members, where their sessions are, and a log of what everybody did.
create table members (
    id             uuid primary key default uuidv7(),
    merchant_id    uuid not null references merchants,
    email          text not null check (email <> '' and email = lower(email)),
    role           text not null check (role in ('owner', 'developer', 'viewer')),
    password_hash  text,
    created_at     timestamptz not null default mizan_now(),
    joined_at      timestamptz,
    removed_at     timestamptz,
    check ((joined_at is null) = (password_hash is null))
);
comment on column members.email is 'in small letters';
comment on column members.password_hash is 'argon2id; null while the invitation is open';
create unique index members_by_email on members (email, merchant_id) where removed_at is null;
create index members_by_merchant on members (merchant_id, id);

alter table sessions
    add column address text,
    add column browser text;
comment on column sessions.person_id is 'a member of a merchant';
comment on column sessions.address is 'where the person signed in from';
create index sessions_by_person on sessions (person_id);

create table audit_log (
    id              uuid primary key default uuidv7(),
    at              timestamptz not null default mizan_now(),
    merchant_id     uuid not null references merchants,
    application_id  uuid references applications,
    member_id       uuid references members,
    actor           text not null check (actor <> ''),
    address         text,
    action          text not null check (action <> ''),
    details         jsonb not null default '{}'
);
comment on column audit_log.member_id is 'null: an operator, at the command line';
comment on column audit_log.actor is 'who it was, as people know them, at that time';
create index audit_log_by_merchant on audit_log (merchant_id, id);

create function refuse_to_change_history() returns trigger language plpgsql as $$
begin
    raise exception 'the audit log is only ever added to' using errcode = 'insufficient_privilege';
end $$;
create trigger audit_log_is_final before update or delete or truncate on audit_log
    for each statement execute function refuse_to_change_history();

-- 0008: What people see and ask of deliveries: tests, lists with filters, resends of many.
alter table webhook_deliveries add column is_test boolean not null default false;
comment on column webhook_deliveries.is_test is 'somebody tries their endpoint; there is no such intent';

create function delivery_facet(status text, event text, last_status_code integer, last_failure text)
returns smallint language sql immutable parallel safe
return (case status when 'pending' then 100 when 'succeeded' then 200 when 'failed' then 300 end
      + case event when 'payment_intent.succeeded' then 10 when 'payment_intent.canceled' then 20 end
      + case when last_status_code between 200 and 599 then last_status_code / 100
             when last_status_code is not null then 6
             when last_failure is not null then 1
             else 0 end)::smallint;
comment on function delivery_facet is 'what the list of deliveries can be filtered by, in one number';
create index webhook_deliveries_by_facet on webhook_deliveries
    (application_id, delivery_facet(status, event, last_status_code, last_failure), id);

create table resend_requests (
    id           uuid primary key,
    delivery_id  uuid not null,
    created_at   timestamptz not null default mizan_now(),
    expires_at   timestamptz not null default mizan_now() + interval '1 day'
);
comment on table resend_requests is 'deliveries that somebody wants sent once more';
comment on column resend_requests.expires_at is 'by then nobody has its form open any more';
create index resend_requests_by_expiry on resend_requests (expires_at);
create index resend_requests_by_delivery on resend_requests (delivery_id, created_at);

create table bulk_resends (
    id              uuid primary key,
    application_id  uuid not null references applications,
    since           timestamptz not null,
    until           timestamptz not null check (since < until),
    found           integer not null check (found > 0),
    is_all          boolean not null,
    reached         uuid not null,
    resent          integer not null default 0,
    next_batch_at   timestamptz not null default mizan_now(),
    created_at      timestamptz not null default mizan_now(),
    finished_at     timestamptz,
    outcome         text check (outcome in ('done', 'stopped', 'no_url', 'paused')),
    check ((finished_at is null) = (outcome is null))
);
comment on table bulk_resends is 'all failed deliveries of a period, resent a few at a time';
comment on column bulk_resends.found is 'how many there were when it was asked for, as far as they were counted';
comment on column bulk_resends.is_all is 'false: there were more than were counted';
comment on column bulk_resends.reached is 'the delivery that was looked at last';
create unique index bulk_resends_one_under_way on bulk_resends (application_id) where finished_at is null;
create index bulk_resends_due on bulk_resends (next_batch_at) where finished_at is null;
create index bulk_resends_by_application on bulk_resends (application_id, created_at);

-- 0009: What people see of payments: lists with filters, and sums of a period.
create index payment_intents_by_application on payment_intents (application_id, status, uuid) include (amount);

alter table payment_attempts add column application_id uuid;
comment on column payment_attempts.application_id is 'of duplicates only, to find an application''s';

create function name_application_of_duplicate() returns trigger language plpgsql as $$
begin
    select application_id into strict new.application_id from payment_intents where uuid = new.intent_uuid;
    return new;
end $$;
create trigger payment_attempts_duplicate before insert or update of state on payment_attempts
    for each row when (new.state = 'duplicate') execute function name_application_of_duplicate();
update payment_attempts set state = state where state = 'duplicate';

create index payment_attempts_duplicates on payment_attempts (application_id, intent_uuid) where state = 'duplicate';

-- 0010: Those who run Mizan: their accounts and what they did; dead letters put back where they came from.
create table operators (
    id             uuid primary key default uuidv7(),
    email          text not null check (email <> '' and email = lower(email)),
    password_hash  text not null,
    created_at     timestamptz not null default mizan_now(),
    removed_at     timestamptz
);
comment on table operators is 'those who sign in to the monitor; they belong to no merchant';
comment on column operators.password_hash is 'argon2id';
create unique index operators_by_email on operators (email) where removed_at is null;
comment on column sessions.person_id is 'a member of a merchant, or an operator';

alter table audit_log
    alter column merchant_id drop not null,
    add column operator_id uuid references operators,
    add check (merchant_id is not null or member_id is null),
    add check (member_id is null or operator_id is null);
comment on column audit_log.merchant_id is 'whose log it is in; null: only operators see it';
comment on column audit_log.member_id is 'null: an operator';
comment on column audit_log.operator_id is 'who it was, at the monitor; null: a member, or the command line';
create index audit_log_by_operators on audit_log (id) where member_id is null;

create table letter_replay_runs (
    id           uuid primary key,
    actor        text not null check (actor <> ''),
    origin       text,
    reached      bigint not null default -1,
    last         bigint not null,
    found        integer not null check (found > 0),
    replayed     integer not null default 0,
    refused      integer not null default 0,
    created_at   timestamptz not null default mizan_now(),
    finished_at  timestamptz,
    outcome      text check (outcome in ('done', 'stopped')),
    check ((finished_at is null) = (outcome is null))
);
comment on table letter_replay_runs is 'many dead letters put back where they came from, a few at a time';
comment on column letter_replay_runs.origin is 'only those of this topic; null: of all';
comment on column letter_replay_runs.reached is 'the offset in dead_letters that was looked at last';
comment on column letter_replay_runs.last is 'the offset in dead_letters that it ends with';
comment on column letter_replay_runs.refused is 'letters whose record is nowhere any more';
create unique index letter_replay_runs_one_under_way on letter_replay_runs ((true)) where finished_at is null;
create index letter_replay_runs_by_time on letter_replay_runs (created_at);

create table letter_replays (
    letter_id    uuid primary key,
    run_id       uuid references letter_replay_runs,
    actor        text not null check (actor <> ''),
    replayed_at  timestamptz not null default mizan_now()
);
comment on table letter_replays is 'dead letters that were put back where they came from';

-- 0011: Attempts that need an operator and the trace that an intent belongs to, beside the payments that go on.
alter table payment_attempts
    add column if not exists handled_at timestamptz,
    add column if not exists handled_note text,
    drop constraint if exists payment_attempts_handled_duplicate,
    add constraint payment_attempts_handled_duplicate
        check (handled_at is null or state = 'duplicate' and handled_note <> '') not valid;
comment on column payment_attempts.handled_at is
    'of a duplicate: when an operator said that it was seen to';
alter table payment_intents add column if not exists trace text;
comment on column payment_intents.trace is
    'W3C traceparent of the call that made it; null where nothing is traced';
alter table outbox add column if not exists trace text;
comment on column outbox.trace is 'W3C traceparent, which goes into the record''s headers';
alter table payment_attempts validate constraint payment_attempts_handled_duplicate;
drop index if exists payment_attempts_duplicates_open;
create index payment_attempts_duplicates_open on payment_attempts (id)
    where state = 'duplicate' and handled_at is null;
drop index if exists payment_attempts_open;
create index payment_attempts_open on payment_attempts (state, id)
    where state in ('awaiting_redirect', 'sent', 'unknown');

create table alembic_version (version_num varchar(32) not null, constraint alembic_version_pkc primary key (version_num));
insert into alembic_version values ('0011');
