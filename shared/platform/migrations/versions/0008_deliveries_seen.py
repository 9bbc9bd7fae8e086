"""What people see and ask of deliveries: tests, lists with filters, resends of many."""

from alembic import op

revision = "0008"
down_revision = "0007"

TESTS = """
alter table webhook_deliveries add column is_test boolean not null default false;
comment on column webhook_deliveries.is_test is 'somebody tries their endpoint; there is no such intent';
"""

# shared/domain/deliveries/try_results.py has the same numbers. Every filter of the list is a set of facets, and of each
# the newest are found by one index, however many there are. A kind of event that is not named here is in no
# filtered list.
LISTS = """
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
"""

# A wish stands here before it goes into the outbox, so that a second click on one button is the same wish.
RESENDS = """
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
"""


def upgrade() -> None:
    connection = op.get_bind().execution_options(no_parameters=True)
    for statements in (TESTS, LISTS, RESENDS):
        connection.exec_driver_sql(statements)
