-- The monthly partitions of intent_events, webhook_deliveries and webhook_tries.

-- A partition is created beside its parent and then attached, which blocks nobody who reads or writes the parent: only
-- the default partition is locked. Rows in the default partition that belong to the month (a clock was wrong for a
-- minute, or the month was not created in time) are moved into the new partition first, because PostgreSQL refuses to
-- attach it otherwise. Only then is the parent locked too, for about a second at most_rows.
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
    'creates one table''s partition of one month if it is missing, or attaches again one that was detached';

create function make_month_partitions(month date) returns void language plpgsql as $$
declare
    parent text;
begin
    foreach parent in array array['intent_events', 'webhook_deliveries', 'webhook_tries'] loop
        perform make_month_partition(parent, month);
    end loop;
end $$;
comment on function make_month_partitions is 'creates the partitions of one month that are missing';

-- The default partitions are a safety net: an insert never fails because a month was not created in time. The
-- scheduler creates the months after these.
create table intent_events_default partition of intent_events default;
create table webhook_deliveries_default partition of webhook_deliveries default;
create table webhook_tries_default partition of webhook_tries default;
select make_month_partitions((date_trunc('month', now() at time zone 'UTC') + make_interval(months => n))::date)
from generate_series(0, 12) as n;
