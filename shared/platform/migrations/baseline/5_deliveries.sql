-- Webhook deliveries, their tries, and requests to resend them.

create table webhook_deliveries (
    id                uuid primary key,
    intent_uuid       uuid not null,
    application_id    uuid not null,
    event             text not null,
    url               text not null,
    secret_version    integer not null,
    status            text not null default 'pending' check (status in ('pending', 'succeeded', 'failed')),
    tries             integer not null default 0,
    step              smallint not null default 1 check (step between 1 and 9),
    next_due_at       timestamptz,
    created_at        timestamptz not null default mizan_now(),
    updated_at        timestamptz not null default mizan_now(),
    last_status_code  integer,
    last_failure      text,
    requeued_at       timestamptz,
    set_aside_at      timestamptz,
    is_test           boolean not null default false,
    constraint webhook_deliveries_due_while_pending check ((status = 'pending') = (next_due_at is not null))
) partition by range (id);
comment on column webhook_deliveries.id is 'the id of its event in intent_events';
comment on column webhook_deliveries.last_failure is
    'why the last try got no response, or no_url: the application''s URL was removed';
comment on column webhook_deliveries.requeued_at is
    'when it was last put back on webhooks.deliver because it was overdue';
comment on column webhook_deliveries.set_aside_at is 'when it fell due while its application was paused';
comment on column webhook_deliveries.is_test is 'sent by a member to try an endpoint; its intent does not exist';
create index webhook_deliveries_by_application on webhook_deliveries (application_id, id desc);
create index webhook_deliveries_by_intent on webhook_deliveries (intent_uuid);
-- The condition does not name the status: a statement that looks for the pending ones among some ids would be led to
-- read this whole index.
create index webhook_deliveries_overdue on webhook_deliveries (next_due_at, id) where next_due_at is not null;
create index webhook_deliveries_set_aside on webhook_deliveries (application_id, id)
    where set_aside_at is not null;

-- Every filter of the list of deliveries is a set of facets. One index finds the newest of each facet, however many
-- deliveries there are. shared/domain/deliveries/facets.py has the same numbers. An event type that is not listed here
-- appears in no filtered list.
create function delivery_facet(status text, event text, last_status_code integer, last_failure text)
returns smallint language sql immutable parallel safe
return (case status when 'pending' then 100 when 'succeeded' then 200 when 'failed' then 300 end
      + case event when 'payment_intent.succeeded' then 10 when 'payment_intent.canceled' then 20 end
      + case when last_status_code between 200 and 599 then last_status_code / 100
             when last_status_code is not null then 6
             when last_failure is not null then 1
             else 0 end)::smallint;
comment on function delivery_facet is 'all that the list of deliveries can be filtered by, in one number';
create index webhook_deliveries_by_facet on webhook_deliveries
    (application_id, delivery_facet(status, event, last_status_code, last_failure), id);

create table webhook_tries (
    delivery_id    uuid not null,
    number         integer not null,
    step           smallint check (step between 1 and 9),
    resend_id      uuid,
    at             timestamptz not null,
    duration_ms    integer not null,
    url            text not null,
    status_code    integer,
    failure        text,
    response_body  bytea,
    primary key (delivery_id, number),
    unique (delivery_id, step),
    unique (delivery_id, resend_id)
) partition by range (delivery_id);
comment on column webhook_tries.number is 'counts every try of the delivery, resends included';
comment on column webhook_tries.step is 'the step of the retry schedule, 1 to 9; null for a resend';
comment on column webhook_tries.response_body is 'its first 16 KiB';

-- A request is stored before its message goes into the outbox, so that a second click on one button is the same
-- request.
create table resend_requests (
    id           uuid primary key,
    delivery_id  uuid not null,
    created_at   timestamptz not null default mizan_now(),
    expires_at   timestamptz not null default mizan_now() + interval '1 day'
);
comment on table resend_requests is 'deliveries that somebody asked to be sent once more';
comment on column resend_requests.expires_at is 'by then nobody has its form open any more';
create index resend_requests_by_expiry on resend_requests (expires_at);
create index resend_requests_by_delivery on resend_requests (delivery_id, created_at);

create table bulk_resends (
    id                uuid primary key,
    application_id    uuid not null references applications,
    since             timestamptz not null,
    until             timestamptz not null check (since < until),
    found             integer not null check (found > 0),
    is_count_exact    boolean not null,
    last_delivery_id  uuid not null,
    resent            integer not null default 0,
    next_batch_at     timestamptz not null default mizan_now(),
    created_at        timestamptz not null default mizan_now(),
    finished_at       timestamptz,
    outcome           text check (outcome in ('done', 'stopped', 'no_url', 'paused')),
    check ((finished_at is null) = (outcome is null))
);
comment on table bulk_resends is 'resends of all failed deliveries of a period, a few at a time';
comment on column bulk_resends.found is 'how many there were when it was requested; counting stops at a limit';
comment on column bulk_resends.is_count_exact is 'false: there were more than were counted';
comment on column bulk_resends.last_delivery_id is 'the delivery that was processed last; the oldest go first';
create unique index bulk_resends_one_running on bulk_resends (application_id) where finished_at is null;
create index bulk_resends_due on bulk_resends (next_batch_at) where finished_at is null;
create index bulk_resends_by_application on bulk_resends (application_id, created_at);
