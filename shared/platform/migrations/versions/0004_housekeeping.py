"""Months that can be made late without harm, and the tables whose rows lapse: sessions, codes and throttles."""

from alembic import op

revision = "0004"
down_revision = "0003"

# A month is made beside its parent and then attached, which stops nobody who reads or writes the parent: only the
# default partition is locked against all. Rows that wait there for this month (a clock was wrong for a minute, or
# the month was not made in time) come along; with them in the default partition it could never be attached. Only
# then is the parent locked against all too, for about a second at most_rows.
MONTHS = """
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
"""

# What a browser or a person holds is random, and only its hash is kept: whoever reads these tables can use nothing.
# A row counts until expires_at; after that it is only kept for those who look into a complaint.
LAPSING = """
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
"""


def upgrade() -> None:
    connection = op.get_bind().execution_options(no_parameters=True)
    for statements in (MONTHS, LAPSING):
        connection.exec_driver_sql(statements)
