"""A database of revision 0011, from before the baseline, is migrated to the baseline and keeps its rows."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from shared.platform.database.pool import Database
from shared.platform.database.schema import (
    SchemaOutdatedError,
    UnsupportedRevisionError,
    check_schema,
    head_revision,
)
from shared.platform.migrations import from_0011
from shared.platform.migrations.runner import migrate
from shared.platform.settings import DatabaseSettings
from stack.postgres import bin_directory
from tests.waiting import eventually

SCHEMA_0011 = (Path(__file__).parent / "schema_0011.sql").read_bytes()
A_ROW_OF_EACH_TABLE = (Path(__file__).parent / "rows_0011.sql").read_bytes()
MONTHS = "*_20[0-9][0-9]_[0-9][0-9]"
WAITS_FOR = """
select true from pg_locks where relation = %s::regclass and not granted and mode = 'AccessExclusiveLock'"""


@pytest.fixture
def database_0011(empty_database: DatabaseSettings) -> DatabaseSettings:
    run(empty_database, SCHEMA_0011)
    return empty_database


def run(database: DatabaseSettings, statements: bytes) -> None:
    with psycopg.connect(database.url) as connection:
        connection.execute(statements)


def rows(database: DatabaseSettings, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database.url) as connection:
        return connection.execute(query.encode()).fetchall()


def dump(database: DatabaseSettings, *options: str) -> list[str]:
    """Return the lines of pg_dump, without those that are random."""
    command = [str(bin_directory() / "pg_dump"), "--no-owner", "--no-acl", *options, database.url]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if "restrict" not in line]


@pytest.mark.parametrize(
    "options",
    [
        ("--schema-only", "--no-comments"),
        # The comments on a month's partition depend on when it was created.
        ("--schema-only", f"--exclude-table={MONTHS}"),
    ],
)
def test_migrated_schema_equals_that_of_a_new_database(
    database_0011: DatabaseSettings, new_database: DatabaseSettings, options: tuple[str, ...]
) -> None:
    """Names, types, defaults, constraints, indexes, functions, triggers and comments, as pg_dump prints them."""
    assert migrate(database_0011.url) == head_revision()
    assert dump(database_0011, *options) == dump(new_database, *options)


def test_migration_keeps_all_rows(database_0011: DatabaseSettings) -> None:
    """Every value of every table, under its new name. Later revisions have tests of their own."""
    run(database_0011, A_ROW_OF_EACH_TABLE)
    before = all_rows(database_0011)
    assert not [table for table, values in before.items() if not values]
    with psycopg.connect(database_0011.url) as connection:  # later revisions may add columns
        from_0011.move_to_baseline(connection)
    after = all_rows(database_0011)
    new_names = [from_0011._TABLES.get(table, table) for table in before]
    assert {new: before[old] for new, old in zip(new_names, before, strict=True)} == after
    names = "select dead_letter_id is not null, bulk_replay_id is not null from dead_letter_replays"
    assert rows(database_0011, names) == [(True, True)]
    names = "select set_aside_at is not null, requeued_at is not null from webhook_deliveries"
    assert rows(database_0011, names) == [(True, True)]


def test_providers_pages_from_before_the_migration_expire_after_a_month(
    database_0011: DatabaseSettings,
) -> None:
    """Their intents live for less than 31 days."""
    run(database_0011, A_ROW_OF_EACH_TABLE)
    migrate(database_0011.url)
    kept = """select url from provider_pages
              where expires_at between now() + interval '30 days' and now() + interval '31 days'"""
    assert rows(database_0011, kept) == [("https://provider.example.ly/pay",)]


def all_rows(database: DatabaseSettings) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of all tables but Alembic's; partitions are read through their parent."""
    tables = rows(
        database,
        """select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
           and not relispartition and relname <> 'alembic_version' order by relname""",
    )
    return {table: rows(database, f"select r::text from {table} as r order by 1") for (table,) in tables}


def test_concurrent_migrations_succeed(database_0011: DatabaseSettings) -> None:
    """A later migration has nothing left to do."""
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: migrate(database_0011.url), range(4))) == {head_revision()}
    assert migrate(database_0011.url) == head_revision()


@pytest.mark.parametrize("done", [1, 8, 30, 80])
def test_interrupted_migration_can_be_resumed(
    database_0011: DatabaseSettings, new_database: DatabaseSettings, done: int
) -> None:
    """It is not one transaction: what an interruption leaves must not stop the next migration."""
    with psycopg.connect(database_0011.url) as connection:
        interrupted = InterruptedConnection(connection, done)
        with pytest.raises(ConnectionAbortedError):
            from_0011.move_to_baseline(interrupted)  # type: ignore[arg-type]
    assert rows(database_0011, "select version_num from alembic_version") == [("0011",)]
    assert migrate(database_0011.url) == head_revision()
    options = ("--schema-only", f"--exclude-table={MONTHS}")
    assert dump(database_0011, *options) == dump(new_database, *options)


class InterruptedConnection:
    """A connection that breaks after some commits."""

    def __init__(self, connection: psycopg.Connection[Any], commits: int) -> None:
        self._connection = connection
        self._commits = commits

    def execute(self, *arguments: Any) -> psycopg.Cursor[Any]:
        return self._connection.execute(*arguments)

    def commit(self) -> None:
        if self._commits == 0:
            raise ConnectionAbortedError
        self._commits -= 1
        self._connection.commit()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("payment_intents", "payment_attempts"),
        ("payment_attempts", "payment_intents"),
        ("payment_attempts", "webhook_deliveries"),
        ("webhook_deliveries", "bulk_resends"),
    ],
)
def test_concurrent_migration_does_not_abort_a_payment(
    database_0011: DatabaseSettings, first: str, second: str
) -> None:
    """Regression: a migration that locked one table and waited for another deadlocked with a payment."""
    with (
        psycopg.connect(database_0011.url) as payment,
        psycopg.connect(database_0011.url, autocommit=True) as observer,
        ThreadPoolExecutor(1) as pool,
    ):
        payment.execute(f"lock table {first} in row exclusive mode".encode())
        migrating = pool.submit(migrate, database_0011.url)
        eventually(lambda: observer.execute(WAITS_FOR, (first,)).fetchone())
        payment.execute(f"lock table {second} in row exclusive mode".encode())
        payment.commit()
        assert migrating.result(60) == head_revision()


def test_detached_month_can_be_attached_after_the_migration(database_0011: DatabaseSettings) -> None:
    """The scheduler was stopped between detaching a month and dropping it."""
    run(
        database_0011,
        b"""select make_month_partitions('2040-03-01');
            alter table webhook_deliveries detach partition webhook_deliveries_2040_03""",
    )
    migrate(database_0011.url)
    run(database_0011, b"select make_month_partitions('2040-03-01')")
    attached = "select relispartition from pg_class where relname = 'webhook_deliveries_2040_03'"
    assert rows(database_0011, attached) == [(True,)]


def test_service_refuses_revision_0011_until_it_is_migrated(database_0011: DatabaseSettings) -> None:
    database = Database(database_0011, "test")
    with pytest.raises(
        SchemaOutdatedError, match=f"at revision 0011, but revision {head_revision()} is needed"
    ):
        check_schema(database)
    migrate(database_0011.url)
    check_schema(database)
    database.close()


def test_older_revision_is_refused(database_0011: DatabaseSettings) -> None:
    """The error says what to do, and nothing is changed."""
    run(database_0011, b"update alembic_version set version_num = '0010'")
    before = dump(database_0011)
    with pytest.raises(UnsupportedRevisionError, match=r"at revision 0010.*from revision 0011 on"):
        migrate(database_0011.url)
    assert dump(database_0011) == before
