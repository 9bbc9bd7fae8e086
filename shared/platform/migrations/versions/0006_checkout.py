"""What the checkout adds: provider accounts, challenges for a code, providers' pages, and limits."""

from alembic import op

revision = "0006"
down_revision = "0005"

# A row is never changed but for being replaced: what began with an account is settled with that account.
ACCOUNTS = """
create table provider_accounts (
    id              uuid primary key default uuidv7(),
    application_id  uuid not null references applications,
    method          text not null check (method in ('card', 'sadad', 'adfali')),
    adapter         text not null check (adapter in ('sandbox', 'plutu')),
    sealed          text,
    created_at      timestamptz not null default mizan_now(),
    replaced_at     timestamptz
);
comment on column provider_accounts.sealed is 'its credentials, encrypted with a key of MIZAN_SECRET_KEYS';
create unique index provider_accounts_current on provider_accounts (application_id, method)
    where replaced_at is null;

alter table payment_attempts add column provider_account_id uuid references provider_accounts;
comment on column payment_attempts.provider_account_id is 'null: the sandbox of a development installation';
"""

# The code itself is never here, and the phone only encrypted, for as long as a code may be sent to it again.
CODES = """
create table code_challenges (
    attempt_id    uuid primary key,
    continuation  text,
    phone_hint    text,
    sealed_phone  text,
    codes_sent    smallint not null default 1,
    codes_tried   smallint not null default 0,
    sent_at       timestamptz not null default mizan_now(),
    expires_at    timestamptz not null
);
comment on table code_challenges is 'attempts whose customer was sent a one-time code';
comment on column code_challenges.continuation is 'what the provider wants to see again beside the code';
comment on column code_challenges.phone_hint is 'the last digits, for the customer to recognise';
comment on column code_challenges.sealed_phone is 'phone and birth year, to send the code again';
create index code_challenges_by_expiry on code_challenges (expires_at);

create table provider_pages (
    attempt_id  uuid primary key,
    url         text not null,
    created_at  timestamptz not null default mizan_now()
);
comment on table provider_pages is 'where the customer of an attempt pays, on a page of the provider''s';
"""

LIMITS = """
create table checkout_limits (
    key         bytea primary key check (octet_length(key) = 32),
    count       integer not null,
    expires_at  timestamptz not null
);
comment on column checkout_limits.key is 'a keyed hash of what is counted: an intent, a phone';
create index checkout_limits_by_expiry on checkout_limits (expires_at);
"""


def upgrade() -> None:
    connection = op.get_bind().execution_options(no_parameters=True)
    for statements in (ACCOUNTS, CODES, LIMITS):
        connection.exec_driver_sql(statements)
