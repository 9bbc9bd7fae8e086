"""Who works for a merchant: its members, where their sessions are, and a log of what everybody did."""

from alembic import op

revision = "0007"
down_revision = "0006"

# A member belongs to one merchant. Whoever works for two has two memberships, which know nothing of each other: a
# merchant that invites somebody learns nothing of other merchants, and can take nobody's address away from them.
MEMBERS = """
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
"""

# Nothing in it can be edited, not even by us: what was wrong is told by another row.
AUDIT = """
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
"""


def upgrade() -> None:
    connection = op.get_bind().execution_options(no_parameters=True)
    for statements in (MEMBERS, AUDIT):
        connection.exec_driver_sql(statements)
