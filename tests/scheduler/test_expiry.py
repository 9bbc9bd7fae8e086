"""Expiry: every unpaid intent is canceled exactly once when it expires, also with concurrent writers (§3)."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest
from prometheus_client import REGISTRY

from services.scheduler.job_runner import JobFailingError
from services.scheduler.jobs.expiry import IntentExpiry
from services.scheduler.quarantine import QuarantineNotEmptyError
from shared.domain.intents.states import IntentStatus, IntentTrigger
from shared.domain.intents.store import EXPIRY_BATCH, expire_due
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.settings import DatabaseSettings
from stack.engines import Engines
from tests.clock import Clock
from tests.database_roles import as_role
from tests.scheduler.due_intents import Intents
from tests.scheduler.running_jobs import running_jobs
from tests.waiting import error_text, eventually


def test_only_due_intents_are_canceled_with_their_event(steady: Database, intents: Intents) -> None:
    """§3: requires_payment_method and expires_at reached. Processing waits for its attempt; final states stay."""
    due, later, processing, succeeded = intents.make(4, due_in_s=60)
    intents.move(processing, IntentTrigger.ATTEMPT_SENT)
    intents.move(succeeded, IntentTrigger.PAYMENT_CONFIRMED)
    for uuid in (due, processing, succeeded):
        intents.change_expiry(uuid, -1)
    with steady.cursor() as cursor:
        assert expire_due(cursor) == 1
        assert expire_due(cursor) == 0
    assert intents.cancellations() == [due]
    assert [intents.status(uuid) for uuid in (due, later, processing, succeeded)] == [
        IntentStatus.CANCELED,
        IntentStatus.REQUIRES_PAYMENT_METHOD,
        IntentStatus.PROCESSING,
        IntentStatus.SUCCEEDED,
    ]


def test_job_wakes_at_the_next_due_time_and_at_least_every_second(
    steady: Database, intents: Intents, clock: Clock
) -> None:
    """It polls even if nothing is due for an hour, because expires_at may be changed."""
    clock.stop_at(clock.now())
    job = IntentExpiry(steady)
    assert job.run_once() <= 1
    (intent,) = intents.make(due_in_s=3600)
    assert job.run_once() <= 1
    intents.change_expiry(intent, 0.2)
    eventually(lambda: job.run_once() == pytest.approx(0.2))
    intents.change_expiry(intent, 0)
    job.run_once()
    assert intents.status(intent) is IntentStatus.CANCELED


def test_expiry_follows_the_databases_clock(steady: Database, intents: Intents, clock: Clock) -> None:
    """Only the database's clock advances by a day; the clock of the process does not."""
    intents.make(due_in_s=24 * 3600)
    IntentExpiry(steady).run_once()
    assert intents.cancellations() == []
    clock.advance(timedelta(hours=24, seconds=1))
    IntentExpiry(steady).run_once()
    assert len(intents.cancellations()) == 1


def test_intents_are_canceled_in_batches_with_the_longest_overdue_first(
    steady: Database, intents: Intents
) -> None:
    """No statement runs long, even if many intents are due."""
    late = intents.make(EXPIRY_BATCH + 500, due_in_s=-10)
    later = intents.make(1, due_in_s=-5)
    job = IntentExpiry(steady)
    job.run_once()
    assert intents.count(IntentStatus.CANCELED) == EXPIRY_BATCH
    assert intents.status(later[0]) is IntentStatus.REQUIRES_PAYMENT_METHOD
    job.run_once()
    assert sorted(intents.cancellations()) == sorted(late + later)


def test_job_pauses_between_batches_while_other_sessions_are_active(
    steady: Database, intents: Intents, database_settings: DatabaseSettings
) -> None:
    """On an idle database there is no pause."""
    intents.make(3 * EXPIRY_BATCH, due_in_s=-1)
    job = IntentExpiry(steady)
    with psycopg.connect(database_settings.url) as other, ThreadPoolExecutor(1) as pool:
        working = pool.submit(other.execute, "select pg_sleep(60)")
        eventually(lambda: job._choose_pause_share() > 0)
        assert job.run_once() > 0
        other.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            working.result()
    eventually(lambda: job._choose_pause_share() == 0)
    job._look_again_at = 0.0
    assert job.run_once() == 0


def test_locked_intent_does_not_delay_other_intents(
    steady: Database, intents: Intents, database: Database
) -> None:
    """A payment locks it: the job retries it soon, and cancels it if the payment comes to nothing."""
    held, *others = intents.make(5, due_in_s=-1)
    job = IntentExpiry(steady)
    with database.transaction() as connection:
        connection.execute("select from payment_intents where uuid = %s for no key update", (held,))
        job.run_once()
        assert sorted(intents.cancellations()) == sorted(others)
        assert 0 < job.run_once() < 0.5
        assert REGISTRY.get_sample_value("mizan_expiry_late_seconds") >= 1  # type: ignore[operator]
    job.run_once()
    job.run_once()
    assert intents.status(held) is IntentStatus.CANCELED
    assert REGISTRY.get_sample_value("mizan_expiry_late_seconds") == 0


def test_several_schedulers_cancel_each_intent_once(
    database_settings: DatabaseSettings, intents: Intents
) -> None:
    """Each intent has exactly one cancellation event."""
    uuids = intents.make(8 * EXPIRY_BATCH, due_in_s=-1)
    databases = [
        Database(as_role("mizan_scheduler", database_settings), "scheduler", **STABLE_PLANS) for _ in range(4)
    ]
    with running_jobs(*(IntentExpiry(database) for database in databases)):
        eventually(lambda: intents.count(IntentStatus.CANCELED) == len(uuids))
    for database in databases:
        database.close()
    assert sorted(intents.cancellations()) == sorted(uuids)


def test_job_notices_an_expiry_changed_in_the_database(steady: Database, intents: Intents) -> None:
    """It polls; nothing notifies the scheduler."""
    (intent,) = intents.make(due_in_s=3600)
    with running_jobs(IntentExpiry(steady)):
        intents.change_expiry(intent, -1)
        eventually(lambda: intents.status(intent) is IntentStatus.CANCELED)


@pytest.mark.kills
def test_expiry_recovers_after_postgres_is_killed(
    killable_engines: Engines, steady: Database, intents: Intents
) -> None:
    """The job fails, reports it, and recovers by itself; nothing is canceled twice."""
    uuids = intents.make(3 * EXPIRY_BATCH, due_in_s=2)
    with running_jobs(IntentExpiry(steady)) as (runner,):
        killable_engines.postgres.kill()
        eventually(lambda: error_text(runner.check, JobFailingError))
        assert REGISTRY.get_sample_value("mizan_scheduled_job_failing", {"job_name": "expiry"}) == 1
        killable_engines.postgres.start()
        eventually(lambda: not error_text(runner.check, JobFailingError))
        eventually(lambda: intents.count(IntentStatus.CANCELED) == len(uuids))
    assert sorted(intents.cancellations()) == sorted(uuids)


def test_intent_that_cannot_be_canceled_does_not_delay_other_intents(
    steady: Database, intents: Intents
) -> None:
    """It is quarantined, reported in /readyz and retried later; everything else expires."""
    uuids = intents.make(EXPIRY_BATCH + 500, due_in_s=-1)
    bad = uuids[700]
    intents.count_events(bad, 2**31 - 1)
    job = IntentExpiry(steady)
    with running_jobs(job) as (runner,):
        eventually(lambda: intents.count(IntentStatus.CANCELED) == len(uuids) - 1)
        eventually(lambda: not error_text(runner.check, JobFailingError))
        # It may be the last one to be tried alone.
        told = eventually(lambda: error_text(job.check, QuarantineNotEmptyError))
        assert told == f"1 intents cannot be canceled, such as {bad}: integer out of range"
        intents.count_events(bad, 1)
        eventually(lambda: intents.status(bad) is IntentStatus.CANCELED)
        eventually(lambda: not error_text(job.check, QuarantineNotEmptyError))
    assert sorted(intents.cancellations()) == sorted(uuids)


def test_quarantined_intent_that_is_paid_is_no_longer_reported(steady: Database, intents: Intents) -> None:
    (bad,) = intents.make(due_in_s=-1)
    intents.count_events(bad, 2**31 - 1)
    job = IntentExpiry(steady)
    with running_jobs(job):
        eventually(lambda: error_text(job.check, QuarantineNotEmptyError))
        intents.count_events(bad, 1, status=IntentStatus.SUCCEEDED)
        eventually(lambda: not error_text(job.check, QuarantineNotEmptyError))


def test_batch_that_exceeds_the_statement_timeout_is_split(
    database_settings: DatabaseSettings, intents: Intents, database: Database
) -> None:
    """Otherwise the same batch would be tried and rolled back forever."""
    uuids = intents.make(EXPIRY_BATCH, due_in_s=-1)
    with database.cursor() as cursor:
        cursor.execute(
            """create function slow() returns trigger language plpgsql
               as 'begin perform pg_sleep(0.002); return new; end'"""
        )
        cursor.execute(
            "create trigger slow before update on payment_intents for each row execute function slow()"
        )
    impatient = Database(
        as_role("mizan_scheduler", replace(database_settings, statement_timeout_s=1)),
        "scheduler",
        **STABLE_PLANS,
    )
    with running_jobs(IntentExpiry(impatient)):
        eventually(lambda: intents.count(IntentStatus.CANCELED) == len(uuids))
    impatient.close()
    assert sorted(intents.cancellations()) == sorted(uuids)
