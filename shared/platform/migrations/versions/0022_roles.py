"""Rights of the services: each has a login role that may do what it needs, and no more.

rights_0022.sql has the rights that this revision grants; shared/platform/database/granted.py has today's.
"""

from pathlib import Path

from alembic import op
from psycopg import Connection

from shared.platform.database.roles import create_missing_roles

revision = "0022"
down_revision = "0021"

_RIGHTS = Path(__file__).parent.parent / "rights_0022.sql"
_ROLES = (
    "mizan_api, mizan_checkout, mizan_webhooks, mizan_scheduler, mizan_dashboard, mizan_monitor, mizan_cli"
)

# Functions of PL/pgSQL find names when they run. Those of SQL found them when they were created, and stay inlined.
_PATH = "set search_path = public, pg_temp"
_FIXED_PATHS = (
    f"alter function forbid_audit_log_changes() {_PATH}",
    f"alter function copy_account_password() {_PATH}",
    f"alter function pass_on_account_password() {_PATH}",
    f"alter function make_month_partition(text, date, bigint) {_PATH}",
    f"alter function make_month_partitions(date) {_PATH}",
)

# Only the owner may change partitions. These functions do it for the scheduler, with the owner's rights, and accept
# only what can be due: two months is the shortest retention that the settings allow.
_PARTITIONS = (
    f"""
    create or replace function check_month_partition(parent text, month text) returns void
    language plpgsql stable {_PATH} as $$
    begin
        if parent in ('intent_events', 'webhook_deliveries', 'webhook_tries')
           and month ~ ('^' || parent || '_[0-9]{{4}}_(0[1-9]|1[0-2])$') then
            return;
        end if;
        raise exception '% is no month of %', month, parent using errcode = 'insufficient_privilege';
    end $$""",
    f"""
    create or replace function check_old_month(parent text, month text) returns void
    language plpgsql stable {_PATH} as $$
    declare
        now timestamp := uuid_extract_timestamp(uuidv7()) at time zone 'UTC';
    begin
        perform check_month_partition(parent, month);
        if to_date(right(month, 7), 'YYYY_MM') >= date_trunc('month', now) - interval '2 months' then
            raise exception '% is too young to be dropped', month using errcode = 'insufficient_privilege';
        end if;
        if month_has_unfinished_work(parent, month) then
            raise exception '% has unfinished work', month using errcode = 'object_in_use';
        end if;
    end $$""",
    f"""
    create or replace function make_coming_month(parent text, ahead integer) returns void
    language plpgsql security definer {_PATH} as $$
    declare
        month date := uuid_extract_timestamp(uuidv7()) at time zone 'UTC' + make_interval(months => ahead);
    begin
        perform check_month_partition(parent, parent || to_char(month, '_YYYY_MM'));
        if ahead between 0 and 12 then
            perform make_month_partition(parent, month);
        else
            raise exception 'no month is made % months ahead', ahead using errcode = 'insufficient_privilege';
        end if;
    end $$""",
    f"""
    create or replace function month_has_unfinished_work(parent text, month text) returns boolean
    language plpgsql security definer {_PATH} as $$
    declare
        deliveries text := 'webhook_deliveries' || right(month, 8);
        found_work boolean := false;
    begin
        perform check_month_partition(parent, month);
        if parent = 'intent_events' then
            execute format('select exists (select from %I where taken_in_at is null
                            and type in (''payment_intent.succeeded'', ''payment_intent.canceled''))', month)
            into found_work;
        end if;
        if not found_work and to_regclass(quote_ident(deliveries)) is not null then
            execute format('select exists (select from %I where next_due_at is not null)', deliveries) into found_work;
        end if;
        return found_work;
    end $$""",
    f"""
    create or replace function detach_old_month(parent text, month text) returns void
    language plpgsql security definer {_PATH} as $$
    begin
        perform check_old_month(parent, month);
        execute format('alter table %I detach partition %I', parent, month);
        perform check_old_month(parent, month);
    end $$""",
    f"""
    create or replace function drop_old_month(parent text, month text) returns void
    language plpgsql security definer {_PATH} as $$
    begin
        perform check_old_month(parent, month);
        if exists (select from pg_inherits where inhrelid = to_regclass(quote_ident(month))) then
            raise exception '% is not detached', month using errcode = 'object_in_use';
        end if;
        execute format('drop table %I', month);
    end $$""",
    f"""
    create or replace function count_rows_without_month(parent text) returns bigint
    language plpgsql security definer {_PATH} as $$
    declare
        counted bigint;
    begin
        perform check_month_partition(parent, parent || '_2000_01');
        execute format('select count(*) from (select from %I limit 10000) as counted', parent || '_default')
        into counted;
        return counted;
    end $$""",
    "comment on function make_coming_month is 'for the scheduler: creates the partition of a coming month'",
    """
    comment on function month_has_unfinished_work is
        'for the scheduler: whether a month has an event that was not taken in, or a pending delivery'""",
    """
    comment on function detach_old_month is
        'for the scheduler: detaches a month that is older than the shortest retention and has no unfinished work'""",
    "comment on function drop_old_month is 'for the scheduler: drops such a month after it was detached'",
    "comment on function count_rows_without_month is 'for the scheduler: rows in a default partition, up to 10,000'",
)

# In production every service refuses to start with the demo's data, whose passwords lie in a file. Most services may
# not read the tables that it is in. The names are those of shared/platform/production/demo_data.py.
_DEMO_DATA = (
    f"""
    create or replace function find_demo_data() returns boolean[]
    language sql stable security definer {_PATH} as $$
        with demo as (select m.id from merchants as m where m.name = 'Demo'
                      and exists (select from members where merchant_id = m.id and email = 'owner@demo.example'))
        select array[
            exists (select from operators where email = 'operator@demo.example' and removed_at is null),
            exists (select from members where merchant_id in (select id from demo) and removed_at is null),
            exists (select from credentials as c join applications as a on a.id = c.application_id
                    where a.merchant_id in (select id from demo) and c.revoked_at is null)]
    $$""",
    "comment on function find_demo_data is 'whether there is an operator, a member or a credential of the demo'",
)

_ENTRY = (
    "revoke all on schema public from public",
    f"grant usage on schema public to {_ROLES}",
    # Also temporary tables: nobody needs them.
    f"""
    do $$ begin
        execute format('revoke all on database %I from public', current_database());
        execute format('grant connect on database %I to {_ROLES}', current_database());
    end $$""",
    "revoke all on all functions in schema public from public",
    "alter default privileges revoke execute on functions from public",
)
_FUNCTIONS = (
    f"""
    grant execute on function mizan_now(), uuid7_floor(timestamptz),
        intent_event_message(uuid, uuid, uuid, integer, text, timestamptz),
        delivery_due_message(uuid, uuid, integer, timestamptz), resend_requested_message(uuid, uuid, uuid),
        delivery_facet(text, text, integer, text), find_demo_data() to {_ROLES}""",
    """
    grant execute on function make_coming_month(text, integer), month_has_unfinished_work(text, text),
        detach_old_month(text, text), drop_old_month(text, text), count_rows_without_month(text) to mizan_scheduler""",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        connection = op.get_bind().connection.driver_connection
        assert isinstance(connection, Connection)
        create_missing_roles(connection)
        for statement in (*_FIXED_PATHS, *_PARTITIONS, *_DEMO_DATA, *_ENTRY, *_FUNCTIONS):
            connection.execute(statement.encode())
        connection.execute(_RIGHTS.read_bytes())
