"""Those who run Mizan: their accounts and what they did; dead letters put back where they came from."""

from alembic import op

revision = "0010"
down_revision = "0009"

# Sessions are of members and of operators: who has one is found by its person's id, in one table or in the other.
OPERATORS = """
create table operators (
    id             uuid primary key default uuidv7(),
    email          text not null check (email <> '' and email = lower(email)),
    password_hash  text not null,
    created_at     timestamptz not null default mizan_now(),
    removed_at     timestamptz
);
comment on table operators is 'those who sign in to the monitor; they belong to no merchant';
comment on column operators.password_hash is 'argon2id';
create unique index operators_by_email on operators (email) where removed_at is null;
comment on column sessions.person_id is 'a member of a merchant, or an operator';
"""

# What concerns one merchant stays in that merchant's log; what concerns the whole house has none.
AUDIT = """
alter table audit_log
    alter column merchant_id drop not null,
    add column operator_id uuid references operators,
    add check (merchant_id is not null or member_id is null),
    add check (member_id is null or operator_id is null);
comment on column audit_log.merchant_id is 'whose log it is in; null: only operators see it';
comment on column audit_log.member_id is 'null: an operator';
comment on column audit_log.operator_id is 'who it was, at the monitor; null: a member, or the command line';
create index audit_log_by_operators on audit_log (id) where member_id is null;
"""

# A letter's id is made of where its record came from and when it was put aside; dead_letters has one partition.
LETTERS = """
create table letter_replay_runs (
    id           uuid primary key,
    actor        text not null check (actor <> ''),
    origin       text,
    reached      bigint not null default -1,
    last         bigint not null,
    found        integer not null check (found > 0),
    replayed     integer not null default 0,
    refused      integer not null default 0,
    created_at   timestamptz not null default mizan_now(),
    finished_at  timestamptz,
    outcome      text check (outcome in ('done', 'stopped')),
    check ((finished_at is null) = (outcome is null))
);
comment on table letter_replay_runs is 'many dead letters put back where they came from, a few at a time';
comment on column letter_replay_runs.origin is 'only those of this topic; null: of all';
comment on column letter_replay_runs.reached is 'the offset in dead_letters that was looked at last';
comment on column letter_replay_runs.last is 'the offset in dead_letters that it ends with';
comment on column letter_replay_runs.refused is 'letters whose record is nowhere any more';
create unique index letter_replay_runs_one_under_way on letter_replay_runs ((true)) where finished_at is null;
create index letter_replay_runs_by_time on letter_replay_runs (created_at);

create table letter_replays (
    letter_id    uuid primary key,
    run_id       uuid references letter_replay_runs,
    actor        text not null check (actor <> ''),
    replayed_at  timestamptz not null default mizan_now()
);
comment on table letter_replays is 'dead letters that were put back where they came from';
"""


def upgrade() -> None:
    connection = op.get_bind().execution_options(no_parameters=True)
    for statements in (OPERATORS, AUDIT, LETTERS):
        connection.exec_driver_sql(statements)
