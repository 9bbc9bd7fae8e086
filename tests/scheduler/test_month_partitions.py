"""Monthly partitions: created ahead, kept for their retention, dropped without blocking other sessions."""

from datetime import timedelta

import psycopg
import pytest

from services.scheduler.jobs import month_partitions
from services.scheduler.jobs.month_partitions import MonthMissingError, MonthPartitions
from shared.platform.database.pool import Database
from shared.platform.settings import DatabaseSettings, RetentionSettings
from tests.clock import Clock
from tests.logs import capture_logs
from tests.scheduler.history import MONTH, PARENTS, History, partition_metric


def _until_idle(job: MonthPartitions) -> None:
    for _ in range(50):
        if job.run_once() == month_partitions._INTERVAL_S:
            return
    raise AssertionError("there is no end to it")


def test_partitions_of_this_month_and_the_next_three_are_created(
    history: History, partitions_job: MonthPartitions
) -> None:
    """Those that are missing, and no more."""
    history.make(1)
    history.take_away(*range(-12, 1))
    _until_idle(partitions_job)
    for parent in PARENTS:
        assert history.attached(parent) == {history.name(parent, ago) for ago in (1, 0, -1, -2, -3)}
    assert partition_metric("months_ahead") == 3


def test_created_month_equals_one_of_the_first_migration(
    history: History, partitions_job: MonthPartitions
) -> None:
    """It has the same columns, constraints and indexes, all of them inherited."""
    history.take_away(-3)
    _until_idle(partitions_job)
    for parent in PARENTS:
        assert history.shape(parent, -3) == history.shape(parent, -4)


def test_rows_in_the_default_partition_move_into_their_month(
    history: History, partitions_job: MonthPartitions
) -> None:
    """A clock was wrong for a minute. While its rows are in the default partition, the month cannot be attached."""
    history.take_away(-3, -12)
    early = [history.add(-3), history.add(-3, 1), history.add(-4, -1), history.add(-12)]
    assert history.place("intent_events", early[0]) == "intent_events_default"
    _until_idle(partitions_job)
    for parent in PARENTS:
        assert history.ids(parent) == sorted(early)
        places = [history.place(parent, id_) for id_ in early]
        assert places == [history.name(parent, -3)] * 3 + [f"{parent}_default"]
        assert partition_metric("default_rows", table=parent) == 1


def test_detached_future_month_is_attached_again(history: History, partitions_job: MonthPartitions) -> None:
    """With its rows, and with those inserted since it was detached."""
    before = history.add(-2, 1)
    for parent in PARENTS:
        history.detach(parent, -2)
    meanwhile = history.add(-2, 2)
    _until_idle(partitions_job)
    for parent in PARENTS:
        assert history.ids(parent) == [before, meanwhile]
        assert history.has(parent, -2)


def test_month_that_cannot_be_created_is_an_error_only_if_it_is_the_next(
    history: History, partitions_job: MonthPartitions, database_settings: DatabaseSettings
) -> None:
    """A reader locks the default partition. The job retries silently while there is time."""
    history.take_away(-2)
    with psycopg.connect(database_settings.url) as reader:
        reader.execute("select from webhook_deliveries")
        assert partitions_job.run_once() >= month_partitions._BUSY_INTERVAL_S
        assert history.has("intent_events", -2)
        assert not history.exists("webhook_deliveries", -2)
    history.take_away(-1)
    with psycopg.connect(database_settings.url) as reader:
        reader.execute("select from webhook_deliveries")
        with pytest.raises(MonthMissingError, match="webhook_deliveries has no partition for 1 months ahead"):
            partitions_job.run_once()
        assert partition_metric("months_ahead") == 0
    _until_idle(partitions_job)
    assert history.has("webhook_deliveries", -1)
    assert history.has("webhook_deliveries", -2)


def test_no_month_is_created_while_the_servers_clock_is_far_behind(
    history: History, partitions_job: MonthPartitions
) -> None:
    """Such months would be dropped as old, with new rows in them, as soon as the clock is right again."""
    history.take_away(0)
    with pytest.raises(MonthMissingError, match=r"the server's clock is behind: even .* is in the future"):
        partitions_job.run_once()
    assert not history.exists("intent_events", 0)
    kept = history.add(0)
    assert history.place("intent_events", kept) == "intent_events_default"


def test_table_with_only_future_months_is_an_error_despite_older_months_of_other_tables(
    history: History, partitions_job: MonthPartitions
) -> None:
    """Each table has its own retention, so one may reach further back than another."""
    history.make(1)
    history.take_away(0)
    history.run("drop table {month}", month=history.name("webhook_tries", 1))
    with pytest.raises(MonthMissingError, match="webhook_tries"):
        partitions_job.run_once()


def test_too_many_rows_in_the_default_partition_are_left_to_an_operator(history: History) -> None:
    """Moving them would block all writers; they are counted before anything is locked."""
    history.take_away(-3)
    rows = [history.add(-3, n) for n in range(3)]
    make = f"select make_month_partition('intent_events', ({MONTH})::date, %s)"
    with pytest.raises(psycopg.errors.RaiseException, match="more than 2 rows wait in intent_events_default"):
        history.run(make, -3, 2)
    assert not history.exists("intent_events", -3)
    history.run(make, -3, 3)
    assert {history.place("intent_events", row) for row in rows} == {history.name("intent_events", -3)}


def test_month_is_dropped_once_all_of_it_is_past_its_retention(
    history: History, partitions_job: MonthPartitions
) -> None:
    """To the millisecond: the last row of the month before is dropped, the first of the kept month stays."""
    history.make(1, 2, 3, 4, 5, 6)
    rows = {ago: (history.add(ago, -1), history.add(ago)) for ago in (2, 3)}
    dropped = {parent: partition_metric("dropped_total", table=parent) for parent in PARENTS}
    _until_idle(partitions_job)
    assert history.ids("intent_events") == [*rows[3][1:], *rows[2]]
    assert history.ids("webhook_deliveries") == history.ids("webhook_tries") == [rows[2][1]]
    for parent, kept in (("intent_events", 3), ("webhook_deliveries", 2), ("webhook_tries", 2)):
        assert [history.exists(parent, ago) for ago in (kept, kept + 1, 6)] == [True, False, False]
        assert partition_metric("dropped_total", table=parent) - dropped[parent] == 6 - kept


def test_retention_follows_the_clock_of_the_ids_not_the_test_clock(
    history: History, partitions_job: MonthPartitions, clock: Clock
) -> None:
    """Rows belong to the month of their id, whatever mizan_now() returns."""
    history.make(1, 2, 3)
    clock.advance(timedelta(days=3650))
    _until_idle(partitions_job)
    assert history.has("intent_events", 3)
    assert not history.exists("intent_events", -120)


def test_each_run_drops_one_month_of_one_table(history: History, partitions_job: MonthPartitions) -> None:
    """The oldest first: a run is short, however many months there are."""
    history.make(1, 2, 3, 4, 5)
    left = sum(len(history.attached(parent)) for parent in PARENTS)
    for turn in range(1, 9):
        assert partitions_job.run_once() == month_partitions._BUSY_INTERVAL_S
        assert sum(len(history.attached(parent)) for parent in PARENTS) == left - turn
        assert not history.exists("intent_events", 5)
    assert partitions_job.run_once() == month_partitions._INTERVAL_S


def test_month_with_a_pending_delivery_is_kept(history: History, partitions_job: MonthPartitions) -> None:
    """So are its events and tries, needed to finish it. Other months are dropped; one warning and a gauge report it."""
    history.make(1, 2, 3, 4, 5)
    pending = history.add(4, status="pending")
    with capture_logs() as log:
        _until_idle(partitions_job)
        partitions_job.run_once()
    for parent in PARENTS:
        assert history.ids(parent) == [pending]
        assert not history.exists(parent, 5)
        assert partition_metric("not_dropped", table=parent) == 1
        warning = (
            f"{history.name(parent, 4)} is past its retention but is not dropped: it has unfinished work"
        )
        assert log.getvalue().count(f'"message": "{warning}"') == 1
    history.run("update webhook_deliveries set status = 'failed', next_due_at = null")
    _until_idle(partitions_job)
    for parent in PARENTS:
        assert not history.exists(parent, 4)
        assert partition_metric("not_dropped", table=parent) == 0


@pytest.mark.parametrize(
    ("type_", "stays"),
    [
        ("payment_intent.succeeded", True),
        ("payment_intent.canceled", True),
        ("payment_intent.created", False),  # it has no webhook
    ],
)
def test_month_with_an_event_not_taken_in_is_kept(
    history: History, partitions_job: MonthPartitions, type_: str, stays: bool
) -> None:
    """Intake has not yet created its delivery."""
    history.make(1, 2, 3, 4)
    history.add(4, type=type_, taken_in_at="never")
    _until_idle(partitions_job)
    assert history.has("intent_events", 4) is stays
    assert not history.exists("webhook_deliveries", 4)
    history.run("update intent_events set taken_in_at = now()")
    _until_idle(partitions_job)
    assert not history.exists("intent_events", 4)


def test_nothing_is_dropped_while_a_month_within_the_retention_is_missing(
    history: History, partitions_job: MonthPartitions
) -> None:
    """If the clock jumps years ahead, everything seems old, but the months in between are missing."""
    history.make(1, 2, 3, 4)
    history.take_away(1)
    with capture_logs() as log:
        _until_idle(partitions_job)
    assert history.has("intent_events", 4)
    assert history.has("webhook_deliveries", 3)
    assert "a later month within the retention is missing" in log.getvalue()
    assert partition_metric("not_dropped", table="intent_events") == 1
    history.make(1)
    _until_idle(partitions_job)
    assert not history.exists("intent_events", 4)
    assert not history.exists("webhook_deliveries", 3)


def test_detached_old_month_is_dropped(
    history: History, steady: Database, database_settings: DatabaseSettings
) -> None:
    """A crash left it detached. The job does not fail while a session still reads it."""
    job = MonthPartitions(steady, RetentionSettings(events_months=3, deliveries_months=3))
    history.make(1, 2, 3, 4)
    for parent in PARENTS:
        history.detach(parent, 4)
    with psycopg.connect(database_settings.url) as reader:
        reader.execute(f"table {history.name('intent_events', 4)}".encode())
        assert job.run_once() == month_partitions._INTERVAL_S
        assert history.exists("intent_events", 4)
    _until_idle(job)
    assert [history.exists(parent, 4) for parent in PARENTS] == [False] * 3
