"""Row-level security: the dashboard sees only rows of the merchant, and of the account, that its transaction names.

`mizan_dashboard` names them in settings that end with the transaction: mizan.merchant_id, and mizan.email for the
account of the person (services/dashboard/row_security.py). Without them it sees nothing. Tables without a policy for it
are empty for it. Every other service sees all rows; what it may do with them is granted to its role. The owner is
exempt. docs/security.md explains it, docs/decisions/0019-row-level-security.md has the plans.
"""

from alembic import op

revision = "0025"
down_revision = "0024"

_DASHBOARD = "mizan_dashboard"
_UNRESTRICTED = "mizan_api, mizan_checkout, mizan_webhooks, mizan_scheduler, mizan_monitor, mizan_cli"
# Each is read once for a statement, not for each row. A setting that has ended is an empty text.
_MERCHANT = "(select nullif(current_setting('mizan.merchant_id', true), '')::uuid)"
_EMAIL = "(select nullif(current_setting('mizan.email', true), ''))"
# The policies of the tables in a subquery hold there, too: these are the applications of the merchant, read once for a
# statement. `coalesce` keeps the planner from searching an index with them: it would expect ten applications, and
# prefer other indexes to the one that is made for a list. `in` would cost half as much again where rows are counted.
_OF_APPLICATION = "coalesce(application_id = any (array(select id from applications)), false)"
# `offset 0` makes the planner look up one row, instead of reading all of the merchant's into a hash table.
_OF_INTENT = "exists (select from payment_intents as seen where seen.uuid = {table}.intent_uuid offset 0)"
_OF_DELIVERY = "exists (select from webhook_deliveries as seen where seen.id = {table}.delivery_id offset 0)"
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
    "payment_attempts": _OF_INTENT,
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
# Who somebody is follows from what only they hold: the token of a session, or of an invitation. The functions see all
# rows, and return those that belong to it. That of a session keeps its plan, because every page needs it; it is
# find_session in shared/domain/accounts/sessions.py.
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
    "revoke all on function dashboard_session, invitation_scope from public",
    f"grant execute on function dashboard_session, invitation_scope to {_DASHBOARD}",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _FUNCTIONS:
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
