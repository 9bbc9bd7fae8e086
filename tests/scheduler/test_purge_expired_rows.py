"""Expired rows are purged after their retention, in small batches, without blocking other sessions."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from prometheus_client import REGISTRY
from psycopg import sql

from services.scheduler.jobs import purge_expired_rows
from services.scheduler.jobs.purge_expired_rows import (
    BUSY_PAUSE_S,
    EXPIRING_TABLES,
    IDLE_PAUSE_S,
    ExpiredRowPurge,
)
from shared.platform.database.pool import Database
from shared.platform.settings import DatabaseSettings, RetentionSettings
from tests.clock import Clock

NOW = datetime(2031, 5, 17, 12, tzinfo=UTC)
KEPT = RetentionSettings(sessions_days=30, codes_days=7, throttles_days=1, failed_sign_ins_days=90)
KEPT_DAYS = {
    "sessions": 30,
    "one_time_codes": 7,
    "login_throttles": 1,
    "failed_sign_ins": 90,
    "code_challenges": 7,
    "checkout_limits": 1,
    "resend_requests": 7,
    "provider_pages": 7,
}

_HASH = "sha256(uuidv7()::text::bytea)"
_COLUMNS = {
    "sessions": ("hash, person_id", f"{_HASH}, uuidv7()"),
    "one_time_codes": ("hash, purpose, subject", f"{_HASH}, 'sign-in', uuidv7()"),
    "login_throttles": ("key, failures", f"{_HASH}, 3"),
    "failed_sign_ins": (
        "minute, service, person_id, reason",
        "mizan_now(), 'dashboard', uuidv7(), 'throttled'",
    ),
    "code_challenges": ("attempt_id", "uuidv7()"),
    "checkout_limits": ("key, count", f"{_HASH}, 3"),
    "resend_requests": ("id, delivery_id", "uuidv7(), uuidv7()"),
    "provider_pages": ("attempt_id, url", "uuidv7(), 'https://bank.example.ly/pay'"),
}


@pytest.fixture(autouse=True)
def _now(clock: Clock) -> None:
    clock.stop_at(NOW)


@pytest.fixture
def job(steady: Database) -> ExpiredRowPurge:
    return ExpiredRowPurge(steady, KEPT)


def _add(database: Database, table: str, expires_at: datetime, rows: int = 1) -> None:
    columns, values = _COLUMNS[table]
    with database.transaction() as connection:
        connection.execute(
            f"""insert into {table} ({columns}, expires_at)
                select {values}, %s - n * interval '1 ms'
                from generate_series(0, %s) as n""".encode(),
            (expires_at, rows - 1),
        )


def _left(database: Database, table: str) -> list[datetime]:
    with database.transaction() as connection:
        statement = sql.SQL("select expires_at from {} order by 1").format(sql.Identifier(table))
        return [row[0] for row in connection.execute(statement)]


def test_every_expiring_table_is_covered_by_these_tests() -> None:
    """A table added to EXPIRING_TABLES must be added to this file."""
    assert {lapsing.table for lapsing in EXPIRING_TABLES} == KEPT_DAYS.keys() == _COLUMNS.keys()


def test_every_table_whose_rows_expire_is_purged(database: Database) -> None:
    """Except intents, which are kept forever."""
    with database.transaction() as connection:
        found = connection.execute(
            """select table_name from information_schema.columns
               where table_schema = 'public' and column_name = 'expires_at'"""
        ).fetchall()
    assert {table for (table,) in found} - {"payment_intents"} == {one.table for one in EXPIRING_TABLES}


def test_providers_page_expires_after_its_intent(database: Database) -> None:
    """An intent expires less than 31 days after it was created, and its page is created later."""
    with database.transaction() as connection:
        connection.execute(
            "insert into provider_pages (attempt_id, url) values (uuidv7(), 'https://bank.ly')"
        )
    assert _left(database, "provider_pages") == [NOW + timedelta(days=31)]


@pytest.mark.parametrize("table", KEPT_DAYS)
def test_row_is_purged_once_it_expired_longer_ago_than_its_retention(
    database: Database, job: ExpiredRowPurge, table: str
) -> None:
    """To the microsecond, and counted. Rows within the retention and unexpired rows stay."""
    edge = NOW - timedelta(days=KEPT_DAYS[table])
    kept = [edge, edge + timedelta(microseconds=1), NOW, NOW + timedelta(days=1)]
    for expires_at in (edge - timedelta(days=1000), edge - timedelta(microseconds=1), *kept):
        _add(database, table, expires_at)
    before = _removed(table)
    assert job.run_once() == IDLE_PAUSE_S
    assert _left(database, table) == kept
    assert _removed(table) - before == 2


def _removed(table: str) -> float:
    return REGISTRY.get_sample_value("mizan_expired_rows_purged_total", {"table": table}) or 0


def test_rows_are_purged_in_small_batches_oldest_first(
    database: Database, job: ExpiredRowPurge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a short pause between batches, and a long one when nothing is left."""
    monkeypatch.setattr(purge_expired_rows, "BATCH", 10)
    over = NOW - timedelta(days=31)
    _add(database, "sessions", over, rows=25)
    _add(database, "login_throttles", over, rows=5)
    assert job.run_once() == BUSY_PAUSE_S
    assert _left(database, "sessions") == [over - timedelta(milliseconds=n) for n in reversed(range(15))]
    assert _left(database, "login_throttles") == []
    assert job.run_once() == BUSY_PAUSE_S
    assert len(_left(database, "sessions")) == 5
    assert job.run_once() == IDLE_PAUSE_S
    assert _left(database, "sessions") == []


def test_table_that_fails_does_not_stop_the_purge_of_others(database: Database, job: ExpiredRowPurge) -> None:
    """The failure is raised after the other tables."""
    with database.transaction() as connection:
        connection.execute("alter table sessions rename to sessions_gone")
    _add(database, "login_throttles", NOW - timedelta(days=31))
    with pytest.raises(psycopg.errors.UndefinedTable):
        job.run_once()
    assert _left(database, "login_throttles") == []


def test_locked_rows_are_left_to_the_next_run(
    database: Database, job: ExpiredRowPurge, database_settings: DatabaseSettings
) -> None:
    """The job does not wait for the lock, and does not delete a row that is extended meanwhile."""
    over = NOW - timedelta(days=31)
    _add(database, "sessions", over, rows=3)
    with psycopg.connect(database_settings.url) as somebody:
        somebody.execute("update sessions set expires_at = %s where expires_at = %s", (NOW, over))
        assert job.run_once() == IDLE_PAUSE_S
        assert _left(database, "sessions") == [over]
    job.run_once()
    assert _left(database, "sessions") == [NOW]


@pytest.mark.parametrize("rows", [0, pytest.param(50_000, marks=pytest.mark.plans)])
@pytest.mark.parametrize("table", KEPT_DAYS)
def test_purge_never_scans_a_whole_table(
    database: Database, steady: Database, job: ExpiredRowPurge, table: str, rows: int
) -> None:
    """Planned on a table that was vacuumed while empty; then it grows without being analyzed."""
    with database.cursor() as cursor:
        cursor.execute(f"alter table {table} set (autovacuum_enabled = off)".encode())
        cursor.execute(f"vacuum analyze {table}".encode())
    for _ in range(10):
        job.run_once()
    if rows:
        _add(database, table, NOW - timedelta(days=KEPT_DAYS[table] + 1), rows)
    for analyzed in (False, True):
        if analyzed:
            with database.cursor() as cursor:
                cursor.execute(f"analyze {table}".encode())
        before = _reads(steady, table)
        assert job.run_once() == (BUSY_PAUSE_S if rows else IDLE_PAUSE_S)
        by_scanning, by_index = _reads(steady, table)
        assert by_scanning == before[0]
        assert by_index - before[1] == min(rows, purge_expired_rows.BATCH)
    with steady.transaction() as connection:
        plan = _plan(connection, table)
    assert "Tid Scan" in plan
    assert f"Index Scan using {table}_by_expiry" in plan
    assert "Seq Scan" not in plan
    assert "Sort" not in plan


def _reads(database: Database, table: str) -> tuple[int, int]:
    """Return the rows read so far by sequential scans, and through the index on expires_at."""
    with database.cursor() as cursor:
        cursor.execute("select pg_stat_force_next_flush()")
        row = cursor.execute(
            """select seq_tup_read, (select idx_tup_fetch from pg_stat_user_indexes where indexrelname = %s)
               from pg_stat_user_tables where relname = %s""",
            (f"{table}_by_expiry", table),
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def _plan(connection: psycopg.Connection[Any], table: str) -> str:
    explained = sql.SQL("explain {}").format(purge_expired_rows.purge_statement(table))
    return "\n".join(line for (line,) in connection.execute(explained, (1,)))
