"""Row-level security: the dashboard sees only rows of the merchant, and of the account, that its transaction names.

`mizan_dashboard` names them in settings that end with the transaction: mizan.merchant_id, and mizan.email for the
account of the person (services/dashboard/row_security.py). Without them it sees nothing. Tables without a policy for it
are empty for it. Every other service sees all rows; what it may do with them is granted to its role. The owner is
exempt. docs/security.md explains it, docs/decisions/0019-row-level-security.md has the plans.

Each attempt gets the application of its intent: looking up the intent of each attempt made lists a quarter dearer.
"""

from uuid import UUID

import sqlalchemy
from alembic import op

revision = "0025"
down_revision = "0024"

_DASHBOARD = "mizan_dashboard"
_UNRESTRICTED = "mizan_api, mizan_checkout, mizan_webhooks, mizan_scheduler, mizan_monitor, mizan_cli"
# Each is read once for a statement, not for each row. A setting that has ended is an empty text.
_MERCHANT_SETTING = "nullif(current_setting('mizan.merchant_id', true), '')::uuid"
_MERCHANT = f"(select {_MERCHANT_SETTING})"
_EMAIL = "(select nullif(current_setting('mizan.email', true), ''))"
# The policies of the tables in a subquery hold there, too: these are the applications of the merchant, read once for a
# statement. `coalesce` keeps the planner from searching an index with them: it would expect ten applications, and
# prefer other indexes to the one that is made for a list. `in` would cost half as much again where rows are counted.
_OF_APPLICATION = "coalesce(application_id = any (array(select id from applications)), false)"
# `offset 0` makes the planner look up one row, instead of reading all of the merchant's into a hash table.
_OF_INTENT = "exists (select from payment_intents as seen where seen.uuid = {table}.intent_uuid offset 0)"
# A function, because it keeps its plan: each statement would plan all partitions of the deliveries. It is dear for each
# row, and a delivery has few of them.
_OF_DELIVERY = "sees_delivery(delivery_id)"
_MEMBERSHIPS = f"(select merchant_id from members where email = {_EMAIL})"

# What the dashboard sees of each table, and may write to it.
_ALL: dict[str, str] = {
    "merchants": f"id = {_MERCHANT}",
    "applications": f"merchant_id = {_MERCHANT}",
    "members": f"merchant_id = {_MERCHANT} or email = {_EMAIL}",
    "audit_log": f"merchant_id = {_MERCHANT}",
    # A failure of nobody's account has no merchant.
    "failed_sign_ins": f"merchant_id is null or merchant_id = {_MERCHANT} or merchant_id in {_MEMBERSHIPS}",
    "users": f"email = {_EMAIL}",
    "sessions": f"person_id in (select id from members where email = {_EMAIL})",
    "one_time_codes": f"subject in (select id from members where merchant_id = {_MERCHANT})",
    "application_methods": _OF_APPLICATION,
    "credentials": _OF_APPLICATION,
    "provider_accounts": _OF_APPLICATION,
    "webhook_secrets": _OF_APPLICATION,
    "bulk_resends": _OF_APPLICATION,
    "payment_intents": _OF_APPLICATION,
    "webhook_deliveries": _OF_APPLICATION,
    "payment_attempts": _OF_APPLICATION,
    "intent_events": _OF_INTENT,
    "webhook_tries": _OF_DELIVERY,
    "resend_requests": _OF_DELIVERY,
}
# What it sees besides: the merchants that somebody who signs in can choose from, and colleagues.
_READ = {
    "merchants": f"id in {_MEMBERSHIPS}",
    "users": f"id in (select user_id from members where merchant_id = {_MERCHANT})",
}
_INSERTED_ONLY = ("outbox",)
_HIDDEN = (
    "operators",
    "operator_inquiries",
    "decision_proposals",
    "code_challenges",
    "provider_pages",
    "checkout_limits",
    "dead_letter_bulk_replays",
    "dead_letter_replays",
    "dead_letter_dismissals",
)
# The column was there for duplicates only. The function names the schema, as set_delivery_facet() does.
_ATTEMPTS = (
    """
    comment on column payment_attempts.application_id is
        'of its intent, set by a trigger: row-level security, and the search for duplicates, need no other row'""",
    """
    create or replace function set_application_of_attempt() returns trigger language plpgsql as $$
    begin
        select application_id into strict new.application_id from public.payment_intents where uuid = new.intent_uuid;
        return new;
    end $$""",
    """
    create or replace trigger payment_attempts_application before insert on payment_attempts
        for each row execute function set_application_of_attempt()""",
)
_FILLED_ATTEMPTS = (
    "drop trigger if exists payment_attempts_duplicate on payment_attempts",
    "drop function if exists set_application_of_duplicate()",
)
_BATCH = 2000
# Rows that somebody has locked are left for the next round: nobody waits for each other.
_FILL = """
with batch as materialized (
    select array(select id from payment_attempts where id > '{after}' order by id limit {limit}) as ids),
unlocked as materialized (
    select id from payment_attempts where id = any((select ids from batch)::uuid[]) and application_id is null
    for no key update skip locked),
filled as (
    update payment_attempts as t
    set application_id = (select i.application_id from payment_intents as i where i.uuid = t.intent_uuid)
    where id = any(array(select id from unlocked)))
select ids[cardinality(ids)] from batch"""
# These functions see all rows. Who somebody is follows from what only they hold, the token of a session or of an
# invitation, and the first two return what belongs to it. That of a session keeps its plan, because every page needs
# it; it is find_session in shared/domain/accounts/sessions.py. The others return what belongs to the merchant of the
# transaction.
_DASHBOARDS = "dashboard_session, invitation_scope, sees_delivery, delivery_times"
_FUNCTIONS = (
    """
    create or replace function dashboard_session(
        session_hash bytea, is_use boolean, idle_s integer, longest_s integer, recent_s integer)
    returns table (has_recent_password boolean, member_id uuid, merchant_id uuid, merchant_name text, email text,
                   role text, created_at timestamptz, joined_at timestamptz, user_id uuid, user_email text,
                   password_hash text, email_verified_at timestamptz)
    language sql volatile rows 1 security definer set search_path = pg_catalog, public, pg_temp
    begin atomic
        with seen as (
            update sessions as s set last_seen_at = mizan_now(),
                expires_at = least(mizan_now() + make_interval(secs => idle_s),
                                   s.created_at + make_interval(secs => longest_s))
            where s.hash = session_hash and s.expires_at > mizan_now()
              and s.last_seen_at < mizan_now() - interval '1 minute' and is_use
        )
        select coalesce(found.password_at > mizan_now() - make_interval(secs => recent_s), false),
               m.id, m.merchant_id, merchants.name, m.email, m.role, m.created_at, m.joined_at,
               u.id, u.email, u.password_hash, u.email_verified_at
        from sessions as found join members as m on m.id = found.person_id and m.removed_at is null
        join merchants on merchants.id = m.merchant_id join users as u on u.id = m.user_id
        where found.hash = session_hash and found.expires_at > mizan_now();
    end""",
    "comment on function dashboard_session is 'the member of a session, which was used now if is_use'",
    """
    create or replace function invitation_scope(invitation_hash bytea) returns table (merchant_id uuid, email text)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    begin atomic
        select m.merchant_id, m.email from one_time_codes as c join members as m on m.id = c.subject
        where c.hash = invitation_hash and c.purpose = 'invitation' and c.used_at is null
          and c.expires_at > mizan_now() and m.removed_at is null;
    end""",
    "comment on function invitation_scope is 'the merchant and the account of an invitation, for row-level security'",
    f"""
    create or replace function sees_delivery(delivery uuid) returns boolean
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    begin atomic
        select exists (
            select from webhook_deliveries as d where d.id = delivery and d.application_id = any (array(
                select a.id from applications as a where a.merchant_id = {_MERCHANT_SETTING})));
    end""",
    "comment on function sees_delivery is 'whether a delivery belongs to the merchant of the transaction'",
    # Reads a thousand tries, for each of which sees_delivery() would cost more than the rest.
    f"""
    create or replace function delivery_times(application uuid, facets smallint[], from_id uuid, until_id uuid)
    returns setof double precision
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    begin atomic
        with succeeded as materialized (
            select newest.id from unnest(facets) as wanted (facet)
            cross join lateral (
                select d.id, d.is_test from webhook_deliveries as d
                where d.application_id = application and d.id >= from_id and d.id < until_id
                  and (d.delivery_facet, d.id) >= (wanted.facet, from_id)
                  and (d.delivery_facet, d.id) < (wanted.facet, until_id)
                order by d.delivery_facet desc, d.id desc limit 1000
            ) as newest
            where not newest.is_test and exists (
                select from applications as a where a.id = application and a.merchant_id = {_MERCHANT_SETTING})
            order by newest.id desc limit 1000
        )
        select greatest(0, 1000 * extract(epoch from first.at - uuid_extract_timestamp(succeeded.id))
                           + first.duration_ms)::double precision
        from succeeded cross join lateral (
            select t.at, t.duration_ms from webhook_tries as t
            where t.delivery_id = succeeded.id and t.status_code between 200 and 299 order by t.number limit 1
        ) as first;
    end""",
    """
    comment on function delivery_times is
        'milliseconds from event to first successful response of the newest 1000 deliveries that have these facets, if '
        'the application belongs to the merchant of the transaction'""",
    f"revoke all on function {_DASHBOARDS} from public",
    f"grant execute on function {_DASHBOARDS} to {_DASHBOARD}",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _ATTEMPTS:
            op.execute(statement)
        _fill_attempts(op.get_bind())
        for statement in (*_FILLED_ATTEMPTS, *_FUNCTIONS):
            op.execute(statement)
        for table, condition in _ALL.items():
            mine = [f"for all to {_DASHBOARD} using ({condition.format(table=table)})"]
            if table in _READ:
                mine.append(f"for select to {_DASHBOARD} using ({_READ[table]})")
            _secure(table, *mine)
        for table in _INSERTED_ONLY:
            _secure(table, f"for insert to {_DASHBOARD} with check (true)")
        for table in _HIDDEN:
            _secure(table)


def _fill_attempts(connection: sqlalchemy.Connection) -> None:
    """Give each attempt that has none its application, in small transactions."""
    connection.exec_driver_sql("set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off")
    unfilled = "select exists (select from payment_attempts where application_id is null)"
    while connection.exec_driver_sql(unfilled).scalar():
        after: UUID | None = UUID(int=0)
        while after is not None:
            after = connection.exec_driver_sql(_FILL.format(after=after, limit=_BATCH)).scalar()
    connection.exec_driver_sql("reset enable_seqscan; reset enable_bitmapscan; reset enable_sort")


def _secure(table: str, *dashboard: str) -> None:
    """Replace the policies of a table, all at once: nobody sees it without them."""
    policies = {"services": f"for all to {_UNRESTRICTED} using (true)"}
    policies |= {f"dashboard_{number}": each for number, each in enumerate(dashboard, 1)}
    statements = [f"alter table {table} enable row level security"]
    for name, policy in policies.items():
        statements += [
            f"drop policy if exists {name} on {table}",
            f"create policy {name} on {table} {policy}",
        ]
    op.execute("; ".join(statements))
