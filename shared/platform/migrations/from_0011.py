"""Brings a database from revision 0011, the last one before the baseline, to revision 0012.

Every row stays. Tables, columns, constraints and indexes get their new names, and comments their new texts.
tests/shared/platform/database/test_migration_from_0011.py compares the result with a new database.

Each statement is a transaction of its own: a transaction that held one table and waited for another could deadlock with
a payment, and PostgreSQL might abort the payment. Every statement can run again after an interruption.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from psycopg import Connection, sql
from psycopg.abc import Query

_BASELINE = Path(__file__).parent / "baseline"

_TABLES = {
    "letter_replays": "dead_letter_replays",
    "letter_replay_runs": "dead_letter_bulk_replays",
}
# (table, old column, new column)
_COLUMNS = (
    ("bulk_resends", "is_all", "is_count_exact"),
    ("bulk_resends", "reached", "last_delivery_id"),
    ("code_challenges", "sealed_phone", "encrypted_phone"),
    ("dead_letter_bulk_replays", "last", "final_offset"),
    ("dead_letter_bulk_replays", "reached", "processed_offset"),
    ("dead_letter_replays", "letter_id", "dead_letter_id"),
    ("dead_letter_replays", "run_id", "bulk_replay_id"),
    ("payment_attempts", "sendings", "provider_requests"),
    ("provider_accounts", "sealed", "encrypted_credentials"),
    ("webhook_deliveries", "parked_at", "set_aside_at"),
    ("webhook_deliveries", "redriven_at", "requeued_at"),
    ("webhook_secrets", "sealed", "encrypted_secret"),
    ("webhook_tries", "answer", "response_body"),
)
# How names of constraints begin, and how they shall begin. PostgreSQL made most of them from a table and a column.
_CONSTRAINTS = (
    ("bulk_resends_is_all_", "bulk_resends_is_count_exact_"),
    ("bulk_resends_reached_", "bulk_resends_last_delivery_id_"),
    ("letter_replay_runs_last_", "dead_letter_bulk_replays_final_offset_"),
    ("letter_replay_runs_reached_", "dead_letter_bulk_replays_processed_offset_"),
    ("letter_replay_runs_", "dead_letter_bulk_replays_"),
    ("letter_replays_letter_id_", "dead_letter_replays_dead_letter_id_"),
    ("letter_replays_run_id_", "dead_letter_replays_bulk_replay_id_"),
    ("letter_replays_", "dead_letter_replays_"),
    ("payment_attempts_sendings_", "payment_attempts_provider_requests_"),
    ("payment_attempts_sent_is_verified", "payment_attempts_sent_has_next_verify_at"),
    ("payment_attempts_under_way_was_sent", "payment_attempts_in_flight_has_sent_at"),
    ("payment_intents_expire_in_our_time", "payment_intents_expires_at_range"),
    ("webhook_secrets_sealed_", "webhook_secrets_encrypted_secret_"),
)
_INDEXES = {
    "bulk_resends_one_under_way": "bulk_resends_one_running",
    "letter_replay_runs_by_time": "dead_letter_bulk_replays_by_time",
    "letter_replay_runs_one_under_way": "dead_letter_bulk_replays_one_running",
    "payment_attempts_one_under_way": "payment_attempts_one_in_flight",
    "webhook_deliveries_parked": "webhook_deliveries_set_aside",
}
_FUNCTIONS = {
    "name_application_of_duplicate": "set_application_of_duplicate",
    "refuse_to_change_history": "forbid_audit_log_changes",
}

# A month's partition that is detached at this moment is renamed as well, so that it can be attached again.
_TABLES_WITH_COLUMN = """
select relname from pg_attribute join pg_class on pg_class.oid = attrelid
where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and attname = %s and attinhcount = 0
  and (relname = %s or relname ~ ('^' || %s || '_\\d{4}_\\d{2}$'))"""
_CONSTRAINTS_TO_RENAME = """
select relname, conname from pg_constraint join pg_class on pg_class.oid = conrelid
where connamespace = current_schema()::regnamespace and starts_with(conname, %s) order by conname"""
_COMMENT = re.compile(r"^comment on .*?;$", re.MULTILINE | re.DOTALL)
_OTHER_CHANGES = (
    "alter table payment_intents validate constraint payment_intents_expires_at_range",
    """do $$ begin
           if exists (select from pg_trigger where tgname = 'audit_log_is_final') then
               alter trigger audit_log_is_final on audit_log rename to audit_log_append_only;
           end if;
       end $$""",
    """create or replace function forbid_audit_log_changes() returns trigger language plpgsql as $$
begin
    raise exception 'the audit log is append-only' using errcode = 'insufficient_privilege';
end $$""",
)
_SET_REVISION = "update alembic_version set version_num = '0012'"


def move_to_baseline(connection: Connection[Any]) -> None:
    """Run all statements and commit after each. Raises what psycopg raises; call it again to go on."""
    for statements in (
        _table_renames,
        _column_renames,
        _constraint_renames,
        _other_renames,
        _last_statements,
    ):
        for statement in statements(connection):
            connection.execute(statement)
            connection.commit()


def _table_renames(_: Connection[Any]) -> Iterator[Query]:
    for old, new in _TABLES.items():
        yield _rename("alter table if exists {} rename to {}", old, new)


def _column_renames(connection: Connection[Any]) -> Iterator[Query]:
    for table, old, new in _COLUMNS:
        for (found,) in connection.execute(_TABLES_WITH_COLUMN, (old, table, table)).fetchall():
            yield _rename("alter table {} rename column {} to {}", found, old, new)


def _constraint_renames(connection: Connection[Any]) -> Iterator[Query]:
    for old, new in _CONSTRAINTS:
        for table, name in connection.execute(_CONSTRAINTS_TO_RENAME, (old,)).fetchall():
            yield _rename("alter table {} rename constraint {} to {}", table, name, new + name[len(old) :])


def _other_renames(connection: Connection[Any]) -> Iterator[Query]:
    for old, new in _INDEXES.items():
        yield _rename("alter index if exists {} rename to {}", old, new)
    for old, new in _FUNCTIONS.items():
        if connection.execute("select from pg_proc where proname = %s", (old,)).rowcount:
            yield _rename("alter function {} rename to {}", old, new)


def _last_statements(_: Connection[Any]) -> Iterator[Query]:
    for statement in _OTHER_CHANGES:
        yield statement.encode()
    for path in sorted(_BASELINE.glob("*.sql")):
        for comment in _COMMENT.findall(path.read_text()):
            yield comment.encode()
    yield _SET_REVISION


def _rename(statement: str, *names: str) -> sql.Composed:
    return sql.SQL(statement).format(*(sql.Identifier(name) for name in names))
