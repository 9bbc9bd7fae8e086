-- Payment intents, the attempts to pay them, and what the checkout stores while a customer pays.

-- There is no foreign key to applications: it would lock the application's row at every create, and applications are
-- never deleted. metadata is json, not jsonb: it comes back as it was sent, in the same order.
-- expires_at is limited because a time that Python cannot represent would make the intent unreadable.
-- Intents are kept for ever, so a scale factor of a fifth would be reached too late: vacuum soon after many have
-- expired, because until then every search for the next due intent reads past the dead index entries.
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
    trace                 text,
    unique (application_id, merchant_reference),
    constraint payment_intents_expires_at_range
        check (expires_at between '2000-01-01 00:00Z' and '9999-01-01 00:00Z')
) with (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000,
    autovacuum_analyze_scale_factor = 0.02
);
comment on column payment_intents.event_seq is
    'seq of the latest intent_events row; incremented under the lock of this row';
comment on column payment_intents.trace is
    'W3C traceparent of the call that created it; null if the call was not traced';
create index payment_intents_due on payment_intents (expires_at) where status = 'requires_payment_method';
-- The one index behind the dashboard's list of payments. Without a filter, the newest of each status are merged. Every
-- create updates it, so there is no second one; it includes the amount so that sums are index-only scans.
create index payment_intents_by_application on payment_intents (application_id, status, uuid) include (amount);

-- A sent attempt always has a next_verify_at, so that none is forgotten after a crash. An unknown attempt without one
-- can only be settled by an operator, because its provider has no status call.
create table payment_attempts (
    id                   uuid primary key default uuidv7(),
    intent_uuid          uuid not null references payment_intents,
    method               text not null check (method in ('card', 'sadad', 'adfali')),
    provider             text not null,
    state                text not null check (state in ('awaiting_code', 'awaiting_redirect', 'sent', 'unknown',
                                                        'paid', 'declined', 'abandoned', 'duplicate')),
    reason               text,
    provider_reference   text,
    next_verify_at       timestamptz,
    created_at           timestamptz not null default mizan_now(),
    updated_at           timestamptz not null default mizan_now(),
    provider_requests    integer not null default 0,
    sent_at              timestamptz,
    verifications        integer not null default 0,
    provider_account_id  uuid references provider_accounts,
    application_id       uuid,
    handled_at           timestamptz,
    handled_note         text,
    constraint payment_attempts_sent_has_next_verify_at
        check (state <> 'sent' or next_verify_at is not null),
    constraint payment_attempts_in_flight_has_sent_at
        check (state not in ('sent', 'unknown') or sent_at is not null),
    constraint payment_attempts_handled_duplicate
        check (handled_at is null or state = 'duplicate' and handled_note <> '')
);
comment on column payment_attempts.id is 'also the provider''s idempotency key: a repeat never charges twice';
comment on column payment_attempts.provider_requests is
    'how many times the provider was asked to charge: once more with each code';
comment on column payment_attempts.sent_at is 'when the provider was last asked to charge';
comment on column payment_attempts.verifications is
    'how many times the provider was asked for the outcome since then';
comment on column payment_attempts.provider_account_id is 'null: the sandbox of a development installation';
comment on column payment_attempts.application_id is
    'set for duplicates only, so that those of one application can be found';
comment on column payment_attempts.handled_at is 'when an operator marked this duplicate as handled';
create index payment_attempts_by_intent on payment_attempts (intent_uuid);
-- Nobody is charged twice: an intent has at most one attempt in flight and at most one that is paid.
create unique index payment_attempts_one_in_flight on payment_attempts (intent_uuid)
    where state in ('sent', 'unknown');
create unique index payment_attempts_one_paid on payment_attempts (intent_uuid) where state = 'paid';
create index payment_attempts_to_verify on payment_attempts (next_verify_at)
    where state in ('sent', 'unknown');
create index payment_attempts_duplicates on payment_attempts (application_id, intent_uuid)
    where state = 'duplicate';
create index payment_attempts_duplicates_open on payment_attempts (id)
    where state = 'duplicate' and handled_at is null;
create index payment_attempts_open on payment_attempts (state, id)
    where state in ('awaiting_redirect', 'sent', 'unknown');

-- Duplicates are rare, so only these few carry their application: a search for one application's duplicates must not
-- read those of all others.
create function set_application_of_duplicate() returns trigger language plpgsql as $$
begin
    select application_id into strict new.application_id from payment_intents where uuid = new.intent_uuid;
    return new;
end $$;
create trigger payment_attempts_duplicate before insert or update of state on payment_attempts
    for each row when (new.state = 'duplicate') execute function set_application_of_duplicate();

-- The code itself is never stored. The phone is stored encrypted, for as long as a code may be sent to it again.
create table code_challenges (
    attempt_id       uuid primary key,
    continuation     text,
    phone_hint       text,
    encrypted_phone  text,
    codes_sent       smallint not null default 1,
    codes_tried      smallint not null default 0,
    sent_at          timestamptz not null default mizan_now(),
    expires_at       timestamptz not null
);
comment on table code_challenges is 'attempts whose customer was sent a one-time code';
comment on column code_challenges.continuation is 'the provider''s token that is sent back with the code';
comment on column code_challenges.phone_hint is 'the last digits, for the customer to recognise';
comment on column code_challenges.encrypted_phone is 'phone and birth year, to send the code again';
create index code_challenges_by_expiry on code_challenges (expires_at);

create table provider_pages (
    attempt_id  uuid primary key,
    url         text not null,
    created_at  timestamptz not null default mizan_now()
);
comment on table provider_pages is 'the provider''s page on which the customer pays an attempt';

create table checkout_limits (
    key         bytea primary key check (octet_length(key) = 32),
    count       integer not null,
    expires_at  timestamptz not null
);
comment on table checkout_limits is 'counters of the checkout''s rate limits';
comment on column checkout_limits.key is 'a keyed hash of what is counted: an intent, a phone';
create index checkout_limits_by_expiry on checkout_limits (expires_at);
