-- Merchants, their applications, and what an application needs to be called, to charge and to receive webhooks.

create table merchants (
    id          uuid primary key default uuidv7(),
    name        text not null check (name <> ''),
    created_at  timestamptz not null default mizan_now()
);

create table applications (
    id                      uuid primary key default uuidv7(),
    merchant_id             uuid not null references merchants,
    name                    text not null check (name <> ''),
    created_at              timestamptz not null default mizan_now(),
    webhook_url             text,
    webhook_secret_version  integer,
    webhooks_paused_at      timestamptz
);
comment on column applications.webhook_secret_version is 'the version that new deliveries are signed with';
comment on column applications.webhooks_paused_at is
    'when an operator paused its webhooks; deliveries that fall due meanwhile are set aside';
create index applications_by_merchant on applications (merchant_id);

-- Only hashes are stored, so whoever reads this table can call nothing. What is issued is random enough that a plain
-- SHA-256 cannot be reversed.
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
comment on column credentials.prefix is 'its first characters, so that people can tell it from others';
comment on column credentials.last_used_at is 'to the minute';
create index credentials_by_application on credentials (application_id, id);

create table application_methods (
    application_id  uuid not null references applications,
    method          text not null check (method in ('card', 'sadad', 'adfali')),
    primary key (application_id, method)
);
comment on table application_methods is 'the payment methods that an application has enabled';

-- A version is never changed or deleted, except to encrypt it with a newer key: the retries of a delivery are signed
-- with the version it began with.
create table webhook_secrets (
    application_id    uuid not null references applications,
    version           integer not null check (version >= 1),
    encrypted_secret  text not null,
    created_at        timestamptz not null default mizan_now(),
    primary key (application_id, version)
);
comment on column webhook_secrets.encrypted_secret is 'encrypted with a key of MIZAN_SECRET_KEYS';
alter table applications add foreign key (id, webhook_secret_version) references webhook_secrets
    deferrable initially deferred;

-- Replacing an account adds a row: an attempt that began with one account is settled with the same account.
create table provider_accounts (
    id                     uuid primary key default uuidv7(),
    application_id         uuid not null references applications,
    method                 text not null check (method in ('card', 'sadad', 'adfali')),
    adapter                text not null check (adapter in ('sandbox', 'plutu')),
    encrypted_credentials  text,
    created_at             timestamptz not null default mizan_now(),
    replaced_at            timestamptz
);
comment on column provider_accounts.encrypted_credentials is 'encrypted with a key of MIZAN_SECRET_KEYS';
create unique index provider_accounts_current on provider_accounts (application_id, method)
    where replaced_at is null;
