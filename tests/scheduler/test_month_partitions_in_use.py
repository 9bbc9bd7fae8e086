"""Partitions are created and dropped while other sessions read and write: no long waits, no lost rows."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier, Event
from time import monotonic

import psycopg
import pytest

from services.scheduler import partition_tables
from services.scheduler.jobs import month_partitions
from services.scheduler.jobs.month_partitions import MonthMissingError, MonthPartitions
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.settings import DatabaseSettings
from tests.database_roles import as_role
from tests.postgres_statistics import count_lock_waits
from tests.scheduler.history import KEPT, PARENTS, History, partition_metric
from tests.scheduler.running_jobs import running_jobs
from tests.waiting import eventually


def test_long_reader_blocks_neither_the_job_nor_other_sessions(
    history: History,
    partitions_job: MonthPartitions,
    database_settings: DatabaseSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The job retries with a short lock timeout, so sessions queued behind its lock wait only briefly."""
    monkeypatch.setattr(month_partitions, "_INTERVAL_S", 0.01)
    history.make(1, 2, 3, 4)
    old = history.add(4)
    with psycopg.connect(database_settings.url) as reader:
        reader.execute("select from intent_events")
        with running_jobs(partitions_job) as (runner,):
            moments = count()
            slowest = _slowest(lambda: (history.add(0, next(moments)), history.ids("intent_events")), for_s=2)
            runner.check()
            assert history.has("intent_events", 4)
            reader.rollback()
            eventually(lambda: not history.exists("intent_events", 4))
    assert slowest < 5  # less than the reader's transaction
    assert old not in history.ids("intent_events")


def _slowest(action: Callable[[], object], for_s: float) -> float:
    slowest, end = 0.0, monotonic() + for_s
    while monotonic() < end:
        began = monotonic()
        action()
        slowest = max(slowest, monotonic() - began)
    return slowest


def test_month_is_kept_if_a_delivery_becomes_pending_while_the_job_waits_for_its_lock(
    history: History,
    partitions_job: MonthPartitions,
    database_settings: DatabaseSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The job had found no unfinished work and waits for its lock when the delivery is resent."""
    monkeypatch.setattr(partition_tables, "_LOCK_TIMEOUT", "10s")
    history.make(1, 2, 3)
    history.add(3, status="failed")
    with ThreadPoolExecutor(1) as pool:
        with psycopg.connect(database_settings.url) as resending:
            resending.execute("update webhook_deliveries set status = 'pending', next_due_at = now()")
            turn = pool.submit(partitions_job.run_once)
            eventually(lambda: count_lock_waits(history.database))
        assert turn.result() == month_partitions._INTERVAL_S
    assert history.run("select status from webhook_deliveries") == [("pending",)]


def test_month_is_created_while_one_of_its_rows_is_being_inserted(
    history: History,
    partitions_job: MonthPartitions,
    database_settings: DatabaseSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The current month is missing; the uncommitted row is in the default partition already."""
    monkeypatch.setattr(partition_tables, "_LOCK_TIMEOUT", "10s")
    history.make(1)
    history.take_away(0)
    insert = (
        "insert into intent_events (intent_uuid, seq, type, at) select uuidv7(), 1, 'payment_intent.x', now()"
    )
    with ThreadPoolExecutor(1) as pool:
        with psycopg.connect(database_settings.url) as writer:
            writer.execute(insert)
            turn = pool.submit(partitions_job.run_once)
            eventually(lambda: count_lock_waits(history.database))
        assert turn.result() == month_partitions._BUSY_INTERVAL_S
    (id_,) = history.ids("intent_events")
    assert history.place("intent_events", id_) == history.name("intent_events", 0)


def test_two_schedulers_create_and_drop_each_month_once(
    history: History, database_settings: DatabaseSettings
) -> None:
    """They run at the same time, and no step fails."""
    history.make(1, 2, 3, 4, 5, 6)
    history.take_away(-1, -2)
    dropped = sum(partition_metric("dropped_total", table=parent) for parent in PARENTS)
    start = Barrier(2)
    databases = [
        Database(as_role("mizan_scheduler", database_settings), "test", **STABLE_PLANS) for _ in range(2)
    ]

    def run_until_dropped(database: Database) -> None:
        job = MonthPartitions(database, KEPT)
        start.wait()
        eventually(lambda: job.run_once() and not history.exists("webhook_tries", 3), every=0)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run_until_dropped, databases))
    for database in databases:
        database.close()
    for parent, kept in (("intent_events", 3), ("webhook_deliveries", 2), ("webhook_tries", 2)):
        assert [history.exists(parent, ago) for ago in (kept + 1, kept, -1, -2)] == [False, True, True, True]
    assert sum(partition_metric("dropped_total", table=parent) for parent in PARENTS) - dropped == 3 + 4 + 4


def test_inserts_succeed_while_months_are_created_and_dropped(
    history: History, partitions_job: MonthPartitions, database_settings: DatabaseSettings
) -> None:
    """Also inserts whose month is missing and is created meanwhile: none fails, none is lost."""
    history.make(*range(1, 9))
    history.take_away(0, -1)
    done = Event()

    def write(months_ago: int) -> int:
        database = Database(database_settings, "test")
        theirs, written = History(database), 0
        while not done.is_set():
            theirs.add(months_ago, milliseconds=(written := written + 1))
        database.close()
        return written

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write, months_ago) for months_ago in (0, -1)]
        eventually(lambda: len(history.ids("intent_events")) > 20)

        def is_idle() -> bool:
            try:
                return partitions_job.run_once() == month_partitions._INTERVAL_S and not history.exists(
                    "webhook_tries", 3
                )
            except MonthMissingError:  # a writer had locked the default partition
                return False

        eventually(is_idle)
        done.set()
        written = sum(writer.result() for writer in writers)
    for parent in PARENTS:
        assert len(history.ids(parent)) == written
        assert history.run("select count(*) from {default}", default=f"{parent}_default") == [(0,)]
