"""What an application needs to be talked to: credentials, payment methods, a webhook URL and its secrets."""

from alembic import op

revision = "0002"
down_revision = "0001"

# Only hashes are kept: whoever reads this table can call nothing. What is issued is random enough that a
# plain SHA-256 cannot be searched backwards.
CREDENTIALS = """
create table credentials (
    id              uuid primary key default uuidv7(),
    application_id  uuid not null references applications,
    kind            text not null check (kind in ('api_key', 'access_token')),
    prefix          text not null,
    hash            bytea not null unique check (octet_length(hash) = 32),
    created_at      timestamptz not null default mizan_now(),
    last_used_at    timestamptz,
    revoked_at      timestamptz
);
comment on column credentials.prefix is 'how it begins, so that people can tell it from others';
comment on column credentials.last_used_at is 'to the minute';
create index credentials_by_application on credentials (application_id, id);
"""

METHODS = """
create table application_methods (
    application_id  uuid not null references applications,
    method          text not null check (method in ('card', 'sadad', 'adfali')),
    primary key (application_id, method)
);
comment on table application_methods is 'the payment methods an application has enabled';
"""

# A version is never changed or deleted: a delivery's retries carry the version it began with.
WEBHOOKS = """
create table webhook_secrets (
    application_id  uuid not null references applications,
    version         integer not null check (version >= 1),
    sealed          text not null,
    created_at      timestamptz not null default mizan_now(),
    primary key (application_id, version)
);
comment on column webhook_secrets.sealed is 'encrypted with a key of MIZAN_SECRET_KEYS';

alter table applications
    add column webhook_url text,
    add column webhook_secret_version integer;
comment on column applications.webhook_secret_version is 'the version that new deliveries are signed with';
alter table applications add foreign key (id, webhook_secret_version) references webhook_secrets
    deferrable initially deferred;
"""


def upgrade() -> None:
    connection = op.get_bind().execution_options(no_parameters=True)
    for statements in (CREDENTIALS, METHODS, WEBHOOKS):
        connection.exec_driver_sql(statements)
