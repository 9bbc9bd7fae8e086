"""Months come and go while others read and write: nobody waits for long, and nothing is lost."""

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
from tests.postgres_statistics import count_lock_waits
from tests.scheduler.history import KEPT, PARENTS, History, partition_metric
from tests.scheduler.running_jobs import running_jobs
from tests.waiting import eventually


def test_a_long_reader_holds_up_neither_the_job_nor_others_behind_it(
    history: History,
    partitions_job: MonthPartitions,
    database_settings: DatabaseSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It tries again and again, and each time those who queue behind it wait for a moment only."""
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
    assert slowest < 5  # not as long as the reader reads
    assert old not in history.ids("intent_events")


def _slowest(action: Callable[[], object], for_s: float) -> float:
    slowest, end = 0.0, monotonic() + for_s
    while monotonic() < end:
        began = monotonic()
        action()
        slowest = max(slowest, monotonic() - began)
    return slowest


def test_work_that_begins_at_the_last_moment_keeps_its_month(
    history: History,
    partitions_job: MonthPartitions,
    database_settings: DatabaseSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While the partitions_job, content with what it saw, waits for its lock, a delivery becomes pending again."""
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


def test_a_month_is_made_under_a_row_that_is_just_being_written(
    history: History,
    partitions_job: MonthPartitions,
    database_settings: DatabaseSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This month is missing; nobody sees the row yet, and it is in the default partition already."""
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


def test_two_schedulers_at_once_do_everything_once(
    history: History, database_settings: DatabaseSettings
) -> None:
    """They get into each other's way in no step, and nothing fails."""
    history.make(1, 2, 3, 4, 5, 6)
    history.take_away(-1, -2)
    dropped = sum(partition_metric("dropped_total", table=parent) for parent in PARENTS)
    start = Barrier(2)
    databases = [Database(database_settings, "test", **STABLE_PLANS) for _ in range(2)]

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


def test_inserts_go_on_while_months_come_and_go(
    history: History, partitions_job: MonthPartitions, database_settings: DatabaseSettings
) -> None:
    """Also those whose month is missing and made under them: none fails, none is lost."""
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
            except MonthMissingError:  # a writer held the default partition at that moment
                return False

        eventually(is_idle)
        done.set()
        written = sum(writer.result() for writer in writers)
    for parent in PARENTS:
        assert len(history.ids(parent)) == written
        assert history.run("select count(*) from {default}", default=f"{parent}_default") == [(0,)]
