"""Failed sign-ins, with an end to how many rows a flood of them can fill; and who issued a credential."""

from alembic import op

revision = "0015"
down_revision = "0014"

_STATEMENTS = (
    # One row for a minute, so that somebody who guesses all day fills 1,440 rows a day and not millions.
    """
    create table if not exists failed_sign_ins (
        id           uuid primary key default uuidv7(),
        at           timestamptz not null default mizan_now(),
        minute       timestamptz not null,
        service      text not null check (service in ('dashboard', 'monitor')),
        person_id    uuid,
        merchant_id  uuid references merchants,
        address      text,
        reason       text not null check (reason <> ''),
        failures     integer not null default 1 check (failures >= 1),
        expires_at   timestamptz not null,
        constraint failed_sign_ins_once unique nulls not distinct (minute, service, person_id, reason, address),
        check (merchant_id is null or person_id is not null)
    )""",
    """
    comment on table failed_sign_ins is
        'sign-ins that failed; what was typed is not stored, because it can be a password in the wrong field'""",
    "comment on column failed_sign_ins.at is 'of the first one in its minute'",
    """
    comment on column failed_sign_ins.person_id is
        'a member of a merchant or, in the monitor, an operator; null: no account, or the address was throttled'""",
    "comment on column failed_sign_ins.merchant_id is 'whose owners see it; null: only operators see it'",
    "comment on column failed_sign_ins.address is 'null: further addresses of that minute'",
    "comment on column failed_sign_ins.expires_at is 'the end of its minute; the retention counts from then'",
    "create index if not exists failed_sign_ins_by_merchant on failed_sign_ins (merchant_id, id)",
    "create index if not exists failed_sign_ins_of_operators on failed_sign_ins (id) where merchant_id is null",
    "create index if not exists failed_sign_ins_by_expiry on failed_sign_ins (expires_at)",
    # A removed member's sign-in is found by address, too.
    "drop index concurrently if exists members_by_any_email",
    "create index concurrently members_by_any_email on members (email)",
    "alter table credentials add column if not exists issued_by uuid",
    "comment on column credentials.issued_by is 'the member who issued it in the dashboard; null: an operator'",
    "alter table credentials drop constraint if exists credentials_issued_by_fkey",
    """
    alter table credentials add constraint credentials_issued_by_fkey foreign key (issued_by) references members
        not valid""",
    "alter table credentials validate constraint credentials_issued_by_fkey",
    # The audit log knows who issued the existing ones, and who created an application with its first ones.
    """
    update credentials as c set issued_by = a.member_id from audit_log as a
    where c.issued_by is null and a.member_id is not null and a.application_id = c.application_id
      and (a.action = 'application_created' and c.created_at <= a.at
           or a.action = 'credential_issued'
              and a.details ->> 'kind' = c.kind and a.details ->> 'prefix' = c.prefix)""",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _STATEMENTS:
            op.execute(statement)
