"""Months of history: made ahead, kept as long as they should be, dropped without anybody noticing."""

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


def test_this_month_and_the_next_three_are_made(history: History, partitions_job: MonthPartitions) -> None:
    """Whatever was missing of them; and no more than that."""
    history.make(1)
    history.take_away(*range(-12, 1))
    _until_idle(partitions_job)
    for parent in PARENTS:
        assert history.attached(parent) == {history.name(parent, ago) for ago in (1, 0, -1, -2, -3)}
    assert partition_metric("months_ahead") == 3


def test_a_month_made_later_is_like_one_made_by_the_first_migration(
    history: History, partitions_job: MonthPartitions
) -> None:
    """The same columns, constraints and indexes, all of them inherited."""
    history.take_away(-3)
    _until_idle(partitions_job)
    for parent in PARENTS:
        assert history.shape(parent, -3) == history.shape(parent, -4)


def test_rows_that_came_before_their_month_move_into_it(
    history: History, partitions_job: MonthPartitions
) -> None:
    """A clock was wrong for a minute: with its rows in the default partition the month could not be attached."""
    history.take_away(-3, -12)
    early = [history.add(-3), history.add(-3, 1), history.add(-4, -1), history.add(-12)]
    assert history.place("intent_events", early[0]) == "intent_events_default"
    _until_idle(partitions_job)
    for parent in PARENTS:
        assert history.ids(parent) == sorted(early)
        places = [history.place(parent, id_) for id_ in early]
        assert places == [history.name(parent, -3)] * 3 + [f"{parent}_default"]
        assert partition_metric("default_rows", table=parent) == 1


def test_a_coming_month_that_somebody_detached_is_attached_again(
    history: History, partitions_job: MonthPartitions
) -> None:
    """With what is in it, and with what came meanwhile."""
    before = history.add(-2, 1)
    for parent in PARENTS:
        history.detach(parent, -2)
    meanwhile = history.add(-2, 2)
    _until_idle(partitions_job)
    for parent in PARENTS:
        assert history.ids(parent) == [before, meanwhile]
        assert history.has(parent, -2)


def test_a_month_that_cannot_be_made_yet_is_tolerated_until_it_comes_next(
    history: History, partitions_job: MonthPartitions, database_settings: DatabaseSettings
) -> None:
    """A reader of the default partition is in the way; nobody need know while there is time."""
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


def test_a_clock_that_is_far_behind_makes_no_months(
    history: History, partitions_job: MonthPartitions
) -> None:
    """They would be dropped as old, with new rows in them, as soon as the clock is right again."""
    history.take_away(0)
    with pytest.raises(MonthMissingError, match=r"the server's clock is behind: even .* is in the future"):
        partitions_job.run_once()
    assert not history.exists("intent_events", 0)
    kept = history.add(0)
    assert history.place("intent_events", kept) == "intent_events_default"


def test_a_table_whose_months_all_lie_ahead_makes_none_whatever_others_have(
    history: History, partitions_job: MonthPartitions
) -> None:
    """They are kept for different times, so that one may reach further back than the other."""
    history.make(1)
    history.take_away(0)
    history.run("drop table {month}", month=history.name("webhook_tries", 1))
    with pytest.raises(MonthMissingError, match="webhook_tries"):
        partitions_job.run_once()


def test_too_many_rows_to_move_are_left_to_an_operator(history: History) -> None:
    """All writers would wait while they are moved; nothing is locked before they are counted."""
    history.take_away(-3)
    rows = [history.add(-3, n) for n in range(3)]
    make = f"select make_month_partition('intent_events', ({MONTH})::date, %s)"
    with pytest.raises(psycopg.errors.RaiseException, match="more than 2 rows wait in intent_events_default"):
        history.run(make, -3, 2)
    assert not history.exists("intent_events", -3)
    history.run(make, -3, 3)
    assert {history.place("intent_events", row) for row in rows} == {history.name("intent_events", -3)}


def test_a_month_goes_when_all_of_it_is_older_than_kept(
    history: History, partitions_job: MonthPartitions
) -> None:
    """To the millisecond: the last row of the month before goes, the first of the month that is kept stays."""
    history.make(1, 2, 3, 4, 5, 6)
    rows = {ago: (history.add(ago, -1), history.add(ago)) for ago in (2, 3)}
    dropped = {parent: partition_metric("dropped_total", table=parent) for parent in PARENTS}
    _until_idle(partitions_job)
    assert history.ids("intent_events") == [*rows[3][1:], *rows[2]]
    assert history.ids("webhook_deliveries") == history.ids("webhook_tries") == [rows[2][1]]
    for parent, kept in (("intent_events", 3), ("webhook_deliveries", 2), ("webhook_tries", 2)):
        assert [history.exists(parent, ago) for ago in (kept, kept + 1, 6)] == [True, False, False]
        assert partition_metric("dropped_total", table=parent) - dropped[parent] == 6 - kept


def test_the_clock_of_the_ids_decides_not_the_one_that_tests_turn(
    history: History, partitions_job: MonthPartitions, clock: Clock
) -> None:
    """mizan_now() may say what it likes: rows go to the month of their id."""
    history.make(1, 2, 3)
    clock.advance(timedelta(days=3650))
    _until_idle(partitions_job)
    assert history.has("intent_events", 3)
    assert not history.exists("intent_events", -120)


def test_one_month_of_one_table_goes_in_a_turn(history: History, partitions_job: MonthPartitions) -> None:
    """The oldest first: a turn is short, however much there is to do."""
    history.make(1, 2, 3, 4, 5)
    left = sum(len(history.attached(parent)) for parent in PARENTS)
    for turn in range(1, 9):
        assert partitions_job.run_once() == month_partitions._BUSY_INTERVAL_S
        assert sum(len(history.attached(parent)) for parent in PARENTS) == left - turn
        assert not history.exists("intent_events", 5)
    assert partitions_job.run_once() == month_partitions._INTERVAL_S


def test_a_month_with_a_pending_delivery_stays(history: History, partitions_job: MonthPartitions) -> None:
    """So do its events and tries, which are needed to finish it; others go, and it is told once and measured."""
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
        ("payment_intent.created", False),  # nobody is told of it
    ],
)
def test_a_month_with_an_event_that_was_not_taken_in_stays(
    history: History, partitions_job: MonthPartitions, type_: str, stays: bool
) -> None:
    """Its webhook has not even begun."""
    history.make(1, 2, 3, 4)
    history.add(4, type=type_, taken_in_at="never")
    _until_idle(partitions_job)
    assert history.has("intent_events", 4) is stays
    assert not history.exists("webhook_deliveries", 4)
    history.run("update intent_events set taken_in_at = now()")
    _until_idle(partitions_job)
    assert not history.exists("intent_events", 4)


def test_nothing_goes_while_a_month_that_is_kept_is_missing(
    history: History, partitions_job: MonthPartitions
) -> None:
    """So it looks when the clock has leapt years ahead: all seems old, and months in between are not there."""
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


def test_a_month_left_between_detaching_and_dropping_is_dropped(
    history: History, steady: Database, database_settings: DatabaseSettings
) -> None:
    """A crash in between; also when somebody still looks at it, which is no failure."""
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
