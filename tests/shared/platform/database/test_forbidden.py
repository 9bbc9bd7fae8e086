"""Each role logs in with its own password and tries what a foothold would try. Everything is refused."""

import re
from collections.abc import Iterator
from contextlib import nullcontext

import psycopg
import pytest

from shared.platform.database.privileges import read_columns
from shared.platform.database.roles import OWNER, ROLE_NAMES, SERVICE_ROLES
from shared.platform.settings import DatabaseSettings
from tests.database_roles import url_as
from tests.engines import TestEngines

ROLES = [role.name for role in SERVICE_ROLES]

FORBIDDEN = [
    # the server and its files
    "copy (select 1) to program 'id'",
    "copy alembic_version from program 'id'",
    "copy (select 1) to '/tmp/mizan-of-a-test'",
    "copy alembic_version from '/etc/passwd'",
    "select pg_read_file('/etc/passwd')",
    "select pg_read_binary_file('postgresql.conf')",
    "select pg_ls_dir('.')",
    "select lo_import('/etc/passwd')",
    "alter system set log_statement = 'all'",
    "select pg_reload_conf()",
    "select rolpassword from pg_authid",
    "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'mizan_owner'",
    "create database mine",
    # the audit log
    "alter table audit_log disable trigger audit_log_append_only",
    "alter table audit_log disable trigger all",
    "alter table audit_log disable row level security",
    "drop trigger audit_log_append_only on audit_log",
    "set session_replication_role = replica",
    "update audit_log set actor = 'somebody else'",
    "delete from audit_log",
    "truncate audit_log",
    # other roles
    "set session authorization mizan_owner",
    "alter role current_user superuser",
    "alter role current_user createrole",
    "alter role mizan_owner password 'known'",
    "alter role mizan_api password 'known'" ,
    "create role mine login",
    "grant mizan_owner to current_user",
    "grant pg_execute_server_program to current_user",
    "grant pg_read_all_data to current_user",
    # the schema
    "create table mine (id int)",
    "create temporary table mine (id int)",
    "create schema mine",
    "create view mine as select 1",
    "create function public.mine() returns int language sql return 1",
    "create or replace function mizan_now() returns timestamptz language sql return now()",
    "alter function find_demo_data() reset search_path",
    "alter table payment_intents add column mine int",
    "drop table alembic_version",
    "create index on payment_intents (amount)",
    "alter database {database} set search_path = mine",
    "comment on table merchants is 'mine'",
    "insert into alembic_version values ('0000')",
    "select make_month_partition('intent_events', '2000-01-01')",
    "select check_old_month('intent_events', 'intent_events_2000_01')",
]  # fmt: skip

SECRETS = {
    ("webhook_secrets", "encrypted_secret"): {"mizan_webhooks", "mizan_dashboard", "mizan_cli"},
    ("provider_accounts", "encrypted_credentials"): {"mizan_checkout", "mizan_cli"},
    ("users", "password_hash"): {"mizan_dashboard", "mizan_cli"},
    ("members", "password_hash"): set[str](),
    ("operators", "password_hash"): {"mizan_monitor", "mizan_cli"},
    ("credentials", "hash"): {"mizan_api", "mizan_cli"},
    ("sessions", "hash"): {"mizan_dashboard", "mizan_monitor", "mizan_cli"},
    ("one_time_codes", "hash"): {"mizan_dashboard"},
    ("code_challenges", "encrypted_phone"): {"mizan_checkout", "mizan_cli"},
    ("checkout_limits", "key"): {"mizan_checkout"},
    ("login_throttles", "key"): {"mizan_dashboard", "mizan_monitor"},
}
"""Who can read what is secret: only those who need it."""


@pytest.fixture(params=ROLES)
def foothold(
    request: pytest.FixtureRequest, database_settings: DatabaseSettings
) -> Iterator[psycopg.Connection]:
    """A session of one role, opened with its own password."""
    with psycopg.connect(url_as(request.param, database_settings.url), autocommit=True) as connection:
        yield connection


def is_refused(connection: psycopg.Connection, statement: str) -> bool:
    can_be_undone = not statement.startswith(("alter system", "create database"))
    try:
        with connection.transaction(force_rollback=True) if can_be_undone else nullcontext():
            connection.execute(statement.encode())
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


def test_server_audit_log_roles_and_schema_are_out_of_reach(
    foothold: psycopg.Connection, database_settings: DatabaseSettings, subtests: pytest.Subtests
) -> None:
    # Of a session that must not be ended by others.
    with psycopg.connect(database_settings.url):
        for statement in FORBIDDEN:
            if statement.startswith(f"alter role {foothold.info.user} "):
                continue  # everybody may change the own password
            with subtests.test(statement):
                assert is_refused(foothold, statement.format(database=foothold.info.dbname))


def test_no_role_can_become_another_one(
    foothold: psycopg.Connection, engines: TestEngines, subtests: pytest.Subtests
) -> None:
    superuser = psycopg.conninfo.conninfo_to_dict(engines.database_url)["user"]
    for name in {*ROLE_NAMES, str(superuser)} - {foothold.info.user}:
        with subtests.test(name):
            assert is_refused(foothold, f"set role {name}")


def test_role_has_no_attributes(foothold: psycopg.Connection) -> None:
    assert (
        foothold.execute(
            """select rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls,
                  exists (select from pg_auth_members where member = r.oid and roleid <> 0)
           from pg_roles as r where rolname = current_user"""
        ).fetchone()
        == (False,) * 6
    )


def test_secrets_are_read_only_by_those_who_need_them(
    foothold: psycopg.Connection, subtests: pytest.Subtests
) -> None:
    for (table, column), readers in SECRETS.items():
        with subtests.test(f"{table}.{column}"):
            assert is_refused(foothold, f"select {column} from {table}") is (
                foothold.info.user not in readers
            )
            # A whole row can only be read by those who may read each column.
            if foothold.info.user not in readers:
                assert is_refused(foothold, f"select to_jsonb(t) from {table} as t")


def test_every_secret_column_is_on_the_list(foothold: psycopg.Connection) -> None:
    found = {
        (table, column)
        for table, columns in read_columns(foothold).items()
        for column in columns
        if re.search("^(hash|key)$|encrypted|password_hash", column) and table != "outbox"
    }
    assert found == SECRETS.keys()


def test_time_limits_hold_for_sessions_that_set_none(foothold: psycopg.Connection) -> None:
    """The services set shorter ones themselves."""
    names = ("statement_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout")
    found = [foothold.execute("select current_setting(%s)", (name,)).fetchone() for name in names]
    role = next(role for role in SERVICE_ROLES if role.name == foothold.info.user)
    assert found == [(value,) for value in role.settings.values()]


def test_another_password_is_refused(database_settings: DatabaseSettings) -> None:
    """Also that of another role."""
    url = url_as("mizan_api", database_settings.url).replace("mizan_api:", f"{OWNER}:")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url)
