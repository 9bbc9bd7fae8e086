"""What each role may do is what docs/security.md says: every table, every verb, every column, every role."""

import psycopg
import pytest
from psycopg import sql

from shared.platform.database.granted import GRANTS, Right, render_table
from shared.platform.database.pool import Database
from shared.platform.database.privileges import (
    PrivilegeFaults,
    expected_rights,
    find_privilege_faults,
    read_columns,
    read_rights,
)
from shared.platform.database.roles import SERVICE_ROLES
from shared.platform.settings import DatabaseSettings
from tests.database_roles import url_as
from tests.readme.documents import ROOT

ROLES = [role.name for role in SERVICE_ROLES]
# `explain` checks the rights and changes nothing.
ATTEMPTS = {
    "select": "explain select {column} from {table}",
    "insert": "explain insert into {table} ({column}) values (default)",
    "update": "explain update {table} set {column} = default",
    "delete": "explain delete from {table}",
    "truncate": "truncate {table} cascade",
    "references": "create table mine (id uuid references {table})",
    "trigger": "create trigger mine before insert on {table} execute function forbid_audit_log_changes()",
    "maintain": "lock table {table} in access exclusive mode nowait",
}
OF_COLUMNS = ("select", "insert", "update")


def faults(database: Database) -> PrivilegeFaults:
    with database.transaction() as connection:
        return find_privilege_faults(connection)


def test_a_migrated_database_grants_exactly_what_is_expected(database: Database) -> None:
    assert faults(database) == PrivilegeFaults((), ())


def test_security_page_has_every_table_and_every_role(database: Database) -> None:
    """The table in docs/security.md is the one that databases are compared with, and no table is left out."""
    assert render_table() in (ROOT / "docs" / "security.md").read_text()
    with database.transaction() as connection:
        assert GRANTS.keys() == read_columns(connection).keys()


def test_partitions_have_no_rights_of_their_own(database: Database, admin_database: Database) -> None:
    """Also a new one: its rows are reached through its table, with the rights on that."""
    with admin_database.cursor() as cursor:
        cursor.execute("set role mizan_scheduler")
        cursor.execute("select make_coming_month('webhook_tries', 12)")
        cursor.execute("reset role")
    with database.transaction() as connection:
        partitions = {
            name
            for (name,) in connection.execute(
                "select relname from pg_class where relispartition and relkind = 'r'"
            )
        }
        assert not {right.table for right in read_rights(connection)} & partitions


@pytest.mark.parametrize("role", ROLES)
def test_every_attempt_succeeds_or_is_refused_as_expected(
    role: str, database: Database, database_settings: DatabaseSettings
) -> None:
    """The role logs in with its own password, and tries every verb on every column of every table."""
    with database.transaction() as connection:
        columns = read_columns(connection)
        partitions = [
            row[0]
            for row in connection.execute(
                "select relname from pg_class where relispartition and relkind = 'r'"
            )
        ]
    expected = {right for right in expected_rights(columns) if right.role == role}
    tried = [
        *(
            Right(role, table, verb, name)
            for table in columns
            for verb in OF_COLUMNS
            for name in columns[table]
        ),
        *(
            Right(role, name, verb, "")
            for name in (*columns, *partitions)
            for verb in ATTEMPTS.keys() - OF_COLUMNS
        ),
    ]
    with psycopg.connect(url_as(role, database_settings.url), autocommit=True) as connection:
        succeeded = {right for right in tried if not _is_system_write(right) and _succeeds(connection, right)}
    expected = {right for right in expected if not _is_system_write(right)}
    # Whoever may delete may also lock the whole table. PostgreSQL has no right to forbid it.
    lockers = {Right(role, right.table, "maintain", "") for right in expected if right.verb == "delete"}
    whole = {
        Right(role, table, "maintain", "")
        for table, roles in GRANTS.items()
        if roles.get(role, {}).get("update") == ()
    }
    assert succeeded == expected | lockers | whole


def _is_system_write(right: Right) -> bool:
    return right.column == "ctid" and right.verb != "select"


def _succeeds(connection: psycopg.Connection, right: Right) -> bool:
    names = {"table": sql.Identifier(right.table), "column": sql.Identifier(right.column or "-")}
    statement = sql.SQL(ATTEMPTS[right.verb])
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement.format(**names))
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True


WIDENED = {
    "grant select on users to mizan_api": "mizan_api may select users (password_hash)",
    "grant update (status) on payment_intents to mizan_webhooks": "mizan_webhooks may update payment_intents (status)",
    "grant select on outbox to public": "mizan_checkout may select outbox",
    "grant delete on audit_log to mizan_dashboard": "mizan_dashboard may delete audit_log",
    "grant select on intent_events_default to mizan_api": "mizan_api may select intent_events_default",
    "grant create on schema public to mizan_monitor": "mizan_monitor may create objects in the schema public",
    "grant execute on function make_month_partition to public": "mizan_cli may execute make_month_partition()",
    "alter role mizan_cli createdb": "mizan_cli has the attribute createdb",
    "grant mizan_owner to mizan_cli": "mizan_cli is a member of mizan_owner",
    "alter table users owner to current_user": "the table users belongs to ",
    "alter table webhook_tries disable row level security": "row-level security of webhook_tries is off",
    "create policy mine on members for select using (true)": "the policy mine of members is not ours",
    "alter policy dashboard_1 on payment_intents using (true)": (
        "the policy dashboard_1 of payment_intents shows the dashboard the rows of all merchants"
    ),
}
NARROWED = {
    "revoke select on payment_intents from mizan_dashboard": "mizan_dashboard may not select payment_intents",
    "revoke update (taken_in_at) on intent_events from mizan_webhooks": "mizan_webhooks may not update intent_events",
    "revoke execute on function mizan_now() from mizan_api": "mizan_api may not execute mizan_now()",
    "revoke usage on schema public from mizan_api": "mizan_api cannot enter the database",
    "alter table audit_log disable trigger audit_log_append_only": "the trigger that protects audit_log is disabled",
    "drop policy services on outbox": "the policy services of outbox for mizan_scheduler",
    "alter policy services on outbox to mizan_api": "the policy services of outbox for mizan_scheduler",
    "drop policy dashboard_1 on webhook_tries": "the policy dashboard_1 of webhook_tries for mizan_dashboard",
}


@pytest.mark.parametrize("statement", [*WIDENED, *NARROWED])
def test_what_is_too_wide_or_missing_is_named(admin_database: Database, statement: str) -> None:
    with admin_database.transaction() as connection, connection.transaction(force_rollback=True):
        connection.execute(statement.encode())
        found = find_privilege_faults(connection)
    named, other = (
        (found.too_wide, found.missing) if statement in WIDENED else (found.missing, found.too_wide)
    )
    expected = {**WIDENED, **NARROWED}[statement]
    start, _, detail = expected.partition(" (")
    assert [text for text in named if text.startswith(start) and detail.rstrip(")") in text], found
    assert not other


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("alter role mizan_api superuser", "mizan_api has the attribute superuser"),
        ("grant mizan_owner to mizan_api", "mizan_api is a member of mizan_owner"),
        ("grant pg_read_all_data to mizan_api", "mizan_api is a member of pg_read_all_data"),
    ],
)
def test_role_with_all_rights_is_named_in_one_line(
    admin_database: Database, statement: str, fault: str
) -> None:
    """And not with the hundreds of rights that follow."""
    with admin_database.transaction() as connection, connection.transaction(force_rollback=True):
        connection.execute(statement.encode())
        assert find_privilege_faults(connection) == PrivilegeFaults((fault,), ())
