-- Members of merchants, operators of Mizan, how they sign in, and the log of what they did.

-- A member belongs to one merchant. Somebody who works for two merchants has two independent rows: a merchant that
-- invites somebody learns nothing about other merchants and cannot take an address away from them.
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
comment on column members.email is 'in lower case';
comment on column members.password_hash is 'argon2id; null while the invitation is open';
create unique index members_by_email on members (email, merchant_id) where removed_at is null;
create index members_by_merchant on members (merchant_id, id);

create table operators (
    id             uuid primary key default uuidv7(),
    email          text not null check (email <> '' and email = lower(email)),
    password_hash  text not null,
    created_at     timestamptz not null default mizan_now(),
    removed_at     timestamptz
);
comment on table operators is 'people who sign in to the monitor; they belong to no merchant';
comment on column operators.password_hash is 'argon2id';
create unique index operators_by_email on operators (email) where removed_at is null;

-- What a browser or a person holds is random, and only its hash is stored: whoever reads sessions and one_time_codes
-- can use nothing. A row is valid until expires_at; later it is only kept to look into complaints.
create table sessions (
    hash          bytea primary key check (octet_length(hash) = 32),
    person_id     uuid not null,
    created_at    timestamptz not null default mizan_now(),
    last_seen_at  timestamptz not null default mizan_now(),
    expires_at    timestamptz not null,
    address       text,
    browser       text
);
comment on table sessions is 'people who are signed in';
comment on column sessions.hash is 'SHA-256 of what the browser holds';
comment on column sessions.person_id is 'a member of a merchant, or an operator';
comment on column sessions.address is 'where the person signed in from';
create index sessions_by_expiry on sessions (expires_at);
create index sessions_by_person on sessions (person_id);

create table one_time_codes (
    hash        bytea primary key check (octet_length(hash) = 32),
    purpose     text not null check (purpose <> ''),
    subject     uuid not null,
    created_at  timestamptz not null default mizan_now(),
    used_at     timestamptz,
    expires_at  timestamptz not null
);
comment on table one_time_codes is 'links and codes that can be used once: an invitation, a recovery code';
comment on column one_time_codes.hash is 'SHA-256 of what the person was sent';
comment on column one_time_codes.subject is 'the id of the person or thing it is for; purpose says which';
create index one_time_codes_by_expiry on one_time_codes (expires_at);

create table login_throttles (
    key              bytea primary key check (octet_length(key) = 32),
    failures         integer not null check (failures >= 0),
    last_failure_at  timestamptz not null default mizan_now(),
    expires_at       timestamptz not null
);
comment on column login_throttles.key is 'a keyed hash of the account or the address whose sign-ins failed';
create index login_throttles_by_expiry on login_throttles (expires_at);

-- An entry about one merchant is in that merchant's log; an entry about the installation has no merchant.
create table audit_log (
    id              uuid primary key default uuidv7(),
    at              timestamptz not null default mizan_now(),
    merchant_id     uuid references merchants,
    application_id  uuid references applications,
    member_id       uuid references members,
    actor           text not null check (actor <> ''),
    address         text,
    action          text not null check (action <> ''),
    details         jsonb not null default '{}',
    operator_id     uuid references operators,
    check (merchant_id is not null or member_id is null),
    check (member_id is null or operator_id is null)
);
comment on column audit_log.merchant_id is 'whose log it is in; null: only operators see it';
comment on column audit_log.member_id is 'null: an operator';
comment on column audit_log.actor is 'the name of the person at that time';
comment on column audit_log.operator_id is 'the operator who used the monitor; null: a member, or the command line';
create index audit_log_by_merchant on audit_log (merchant_id, id);
create index audit_log_by_operators on audit_log (id) where member_id is null;

-- Nobody can edit the log, not even its owner: a mistake is corrected by another entry.
create function forbid_audit_log_changes() returns trigger language plpgsql as $$
begin
    raise exception 'the audit log is append-only' using errcode = 'insufficient_privilege';
end $$;
create trigger audit_log_append_only before update or delete or truncate on audit_log
    for each statement execute function forbid_audit_log_changes();
