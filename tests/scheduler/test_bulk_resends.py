"""Bulk resends: exactly the failed deliveries of a period, each once, oldest first, at a limited rate."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg import Connection

from services.scheduler.jobs import bulk_resends
from services.scheduler.jobs.bulk_resends import BulkResends, resend_id
from shared.domain.deliveries.bulk_resend import (
    BulkResend,
    BulkResendInProgressError,
    NothingFailedError,
    NothingWaitingError,
    get_bulk_resend,
    start_bulk_resend,
    start_waiting_resend,
    stop_bulk_resend,
)
from shared.domain.deliveries.bulk_selection import BATCH, count_failed, count_waiting
from shared.domain.deliveries.pause import SendingRefusedError, pause_webhooks
from shared.domain.deliveries.resend import MAX_PER_MINUTE, TooManyResendsError, request_resend
from shared.domain.messages import ResendRequested, decode
from shared.platform.database.pool import Database
from shared.platform.errors import RefusedError
from tests.clock import Clock
from tests.dashboard.delivery_rows import CANCELED, Deliveries
from tests.scheduler.running_jobs import running_jobs
from tests.waiting import eventually

A_DAY = timedelta(days=1)


class Resending:
    """Bulk resends of one application, and the job that the test runs by hand."""

    def __init__(self, database: Database, steady: Database, clock: Clock, application: UUID) -> None:
        self.database = database
        self.clock = clock
        self.application = application
        self.deliveries = Deliveries(database, application)
        self.job = BulkResends(steady)

    def begin(self, request_id: UUID | None = None, days: int = 7) -> BulkResend:
        now = datetime.now(UTC)
        with self.database.transaction() as connection:
            begun, _ = start_bulk_resend(
                connection, self.application, request_id or uuid4(), now - days * A_DAY, now + A_DAY
            )
        return begun

    def retry_waiting(self, request_id: UUID | None = None) -> BulkResend:
        with self.database.transaction() as connection:
            begun, _ = start_waiting_resend(connection, self.application, request_id or uuid4())
        return begun

    def stop(self, bulk: BulkResend) -> bool:
        with self.database.transaction() as connection:
            return stop_bulk_resend(connection, self.application, bulk.id)

    def now(self, bulk: BulkResend) -> BulkResend:
        with self.database.transaction() as connection:
            return get_bulk_resend(connection, self.application, bulk.id)

    def run_once(self) -> None:
        """Run the job until it pauses, then advance the clock by a second."""
        while self.job.run_once() == 0:
            pass
        self.clock.advance(timedelta(seconds=1))

    def finish(self, bulk: BulkResend) -> BulkResend:
        for _ in range(100):
            self.run_once()
            if self.now(bulk).outcome:
                return self.now(bulk)
        raise AssertionError("it does not end")

    def requests(self) -> list[tuple[UUID, UUID]]:
        """Return delivery id and resend id of the requests in the outbox, in order."""
        rows = self.deliveries.run(
            "select key, payload from outbox where topic = 'webhooks.resend' order by id"
        )
        messages = [decode(payload.encode()) for _, payload in rows]
        wanted = [message for message in messages if isinstance(message, ResendRequested)]
        assert [key for key, _ in rows] == [str(message.delivery_id) for message in wanted]
        assert {message.application_id for message in wanted} <= {self.application}
        return [(message.delivery_id, message.id) for message in wanted]

    def resent(self) -> list[UUID]:
        return [delivery for delivery, _ in self.requests()]


@pytest.fixture
def make_resending(database: Database, steady: Database, clock: Clock) -> Callable[[], Resending]:
    def make() -> Resending:
        with database.transaction() as connection:
            row = connection.execute(
                """with merchant as (insert into merchants (name) values ('Tripoli Coffee') returning id)
                   insert into applications (merchant_id, name, webhook_url)
                   select id, 'shop', 'https://shop.example' from merchant returning id"""
            ).fetchone()
        assert row is not None
        return Resending(database, steady, clock, row[0])

    return make


@pytest.fixture
def resending(make_resending: Callable[[], Resending]) -> Resending:
    return make_resending()


def test_failed_deliveries_of_the_period_are_resent_oldest_first(
    resending: Resending, make_resending: Callable[[], Resending]
) -> None:
    make = resending.deliveries.make
    make("failed", 500, ago=8 * A_DAY)  # before the period
    expected = [
        make("failed", 404, ago=6 * A_DAY, event=CANCELED),
        make("failed", None, failure="no_url", tries=0, ago=5 * A_DAY),
        make("failed", 500, ago=5 * A_DAY),
        make("failed", 301, ago=4 * A_DAY),
        make("failed", None, failure="dns", ago=3 * A_DAY),
        make("failed", 700, ago=2 * A_DAY),
        make("failed", 200),  # a resend got a 200 after the delivery had failed for good
    ]
    make("pending", 500)
    make("succeeded", 200)
    make("failed", 500, is_test=True)
    make_resending().deliveries.make("failed", 500)
    begun = resending.begin()
    assert (begun.found, begun.is_count_exact, begun.resent) == (len(expected), True, 0)
    ended = resending.finish(begun)
    assert resending.resent() == expected
    assert (ended.outcome, ended.resent) == ("done", len(expected))
    assert resending.requests() == [(delivery, resend_id(begun.id, delivery)) for delivery in expected]


def test_one_batch_is_resent_each_second(resending: Resending) -> None:
    """By the database's clock, however often the job runs."""
    made = resending.deliveries.make_many(2 * BATCH + 3, "failed", 500)
    begun = resending.begin()
    seen = []
    for _ in range(3):
        resending.run_once()
        seen.append(len(resending.resent()))
    assert seen == [BATCH, 2 * BATCH, 2 * BATCH + 3]
    assert resending.now(begun).outcome == "done"
    assert resending.resent() == made


def test_bulk_resends_of_applications_do_not_wait_for_each_other(
    make_resending: Callable[[], Resending],
) -> None:
    shops = [make_resending() for _ in range(3)]
    for shop in shops:
        shop.deliveries.make_many(BATCH + 1, "failed", 500)
        shop.begin()
    shops[0].run_once()
    counted = shops[0].deliveries.run(
        """select count(*) from outbox group by payload::json ->> 'application_id'"""
    )
    assert counted == [(BATCH,)] * 3


def test_crash_in_the_middle_of_a_batch_is_rolled_back(
    resending: Resending, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outbox rows are rolled back too, and the batch is resent once."""
    made = resending.deliveries.make_many(BATCH + 2, "failed", 500)
    begun = resending.begin()
    advance = bulk_resends._advance

    def crash(connection: Connection[Any], under_way: Any) -> int:
        advance(connection, under_way)
        raise RuntimeError("killed")

    monkeypatch.setattr(bulk_resends, "_advance", crash)
    with pytest.raises(RuntimeError):
        resending.job.run_once()
    assert resending.resent() == []
    assert resending.now(begun).resent == 0
    monkeypatch.undo()
    resending.finish(begun)
    assert resending.resent() == made


def test_concurrent_schedulers_resend_nothing_twice(
    steady: Database, resending: Resending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_resends, "BATCH_EVERY_S", 0.0)
    monkeypatch.setattr(bulk_resends, "PAUSE_S", 0.001)
    made = resending.deliveries.make_many(15 * BATCH, "failed", 500)
    begun = resending.begin()
    with running_jobs(BulkResends(steady), BulkResends(steady), BulkResends(steady), stop=Event()):
        eventually(lambda: resending.now(begun).outcome)
    assert resending.resent() == made
    assert resending.now(begun).resent == len(made)


def test_bulk_resend_locked_by_another_scheduler_is_skipped(
    database: Database, steady: Database, resending: Resending
) -> None:
    resending.deliveries.make("failed", 500)
    begun = resending.begin()
    with database.transaction() as connection:
        connection.execute("select from bulk_resends where id = %s for update", (begun.id,))
        assert BulkResends(steady).run_once() > 0
    assert resending.resent() == []


def test_deliveries_changed_since_the_bulk_resend_started_are_skipped(
    resending: Resending, clock: Clock
) -> None:
    """One succeeded, one was resent and failed again, one failed only later."""
    kept, succeeded, resent, later = (
        resending.deliveries.make("failed", 500),
        resending.deliveries.make("failed", 500),
        resending.deliveries.make("failed", 500),
        resending.deliveries.make("pending", 500),
    )
    begun = resending.begin()
    assert begun.found == 3
    clock.advance(timedelta(seconds=1))
    run = resending.deliveries.run
    run(
        "update webhook_deliveries set status = 'succeeded', updated_at = mizan_now() where id = %s",
        (succeeded,),
    )
    run("update webhook_deliveries set tries = 2, updated_at = mizan_now() where id = %s", (resent,))
    run(
        """update webhook_deliveries set status = 'failed', next_due_at = null, updated_at = mizan_now()
           where id = %s""",
        (later,),
    )
    ended = resending.finish(begun)
    assert resending.resent() == [kept]
    assert (ended.resent, ended.found) == (1, 3)


def test_repeated_request_starts_one_bulk_resend(resending: Resending) -> None:
    """Also after it has ended."""
    resending.deliveries.make("failed", 500)
    request_id = uuid4()
    first = resending.begin(request_id)
    assert resending.begin(request_id).id == first.id
    resending.finish(first)
    assert resending.begin(request_id).outcome == "done"
    resending.run_once()
    assert len(resending.resent()) == 1


def test_one_bulk_resend_per_application_at_a_time(resending: Resending) -> None:
    resending.deliveries.make("failed", 500)
    first = resending.begin()
    with pytest.raises(BulkResendInProgressError) as refused:
        resending.begin()
    assert refused.value.running_id == first.id
    resending.finish(first)
    resending.begin()


def test_another_applications_bulk_resend_is_not_found(
    resending: Resending, make_resending: Callable[[], Resending]
) -> None:
    resending.deliveries.make("failed", 500)
    other = make_resending()
    other.deliveries.make("failed", 500)
    theirs = other.begin()
    with pytest.raises(RefusedError):
        resending.begin(theirs.id)
    with pytest.raises(RefusedError):
        resending.now(theirs)
    assert not resending.stop(theirs)
    assert other.now(theirs).outcome is None


def test_bulk_resend_without_failed_deliveries_is_refused(resending: Resending) -> None:
    resending.deliveries.make("succeeded", 200)
    with pytest.raises(NothingFailedError):
        resending.begin()


def test_stopped_bulk_resend_resends_no_more(resending: Resending) -> None:
    resending.deliveries.make_many(BATCH + 5, "failed", 500)
    begun = resending.begin()
    resending.run_once()
    assert resending.stop(begun)
    assert not resending.stop(begun)
    resending.run_once()
    ended = resending.now(begun)
    assert (ended.outcome, ended.resent) == ("stopped", BATCH)
    assert len(resending.resent()) == BATCH


def test_removing_the_webhook_url_ends_the_bulk_resend(resending: Resending) -> None:
    resending.deliveries.make_many(BATCH + 5, "failed", 500)
    begun = resending.begin()
    resending.run_once()
    resending.deliveries.run("update applications set webhook_url = null")
    ended = resending.finish(begun)
    assert (ended.outcome, ended.resent) == ("no_url", BATCH)
    with pytest.raises(SendingRefusedError, match="no webhook URL"):
        resending.begin()


def test_pausing_webhooks_ends_the_bulk_resend(database: Database, resending: Resending) -> None:
    resending.deliveries.make_many(BATCH + 5, "failed", 500)
    begun = resending.begin()
    resending.run_once()
    with database.transaction() as connection:
        pause_webhooks(connection, resending.application)
    assert resending.finish(begun).outcome == "paused"
    with pytest.raises(SendingRefusedError, match="paused"):
        resending.begin()


def test_failed_deliveries_are_counted_up_to_10000(
    database: Database, resending: Resending, monkeypatch: pytest.MonkeyPatch
) -> None:
    resending.deliveries.run(
        """insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, step)
           select uuidv7(), uuidv7(), %s, 'payment_intent.succeeded', 'https://shop.example', 1, 'failed', 9
           from generate_series(1, 10001)""",
        (resending.application,),
    )
    now = datetime.now(UTC)
    with database.transaction() as connection:
        found = count_failed(connection, resending.application, now - A_DAY, now + A_DAY)
    assert (found.count, found.is_exact) == (10_000, False)


def test_bulk_resend_is_not_limited_by_resends_of_the_last_minute(resending: Resending) -> None:
    """It has its own pace, and resends each delivery once."""
    delivery = resending.deliveries.make("failed", 500)
    for number in range(MAX_PER_MINUTE):
        with resending.database.transaction() as connection:
            resend_id = uuid4()
            request_resend(connection, delivery, resend_id)
            connection.execute(
                """insert into webhook_tries (delivery_id, number, resend_id, at, duration_ms, url)
                   values (%s, %s, %s, mizan_now(), 1, 'https://shop.example/')""",
                (delivery, 100 + number, resend_id),
            )
    with resending.database.transaction() as connection, pytest.raises(TooManyResendsError):
        request_resend(connection, delivery, uuid4())
    assert resending.finish(resending.begin()).resent == 1


def test_deliveries_with_a_recent_resend_request_are_skipped(resending: Resending) -> None:
    """Requested by a member or the bulk resend before, and not sent yet; after an hour it counts as lost."""
    first, second = resending.deliveries.make_many(2, "failed", 500)
    with resending.database.transaction() as connection:
        request_resend(connection, first, uuid4())
    done = resending.finish(resending.begin())
    assert (done.resent, resending.resent()) == (1, [first, second])
    again = resending.finish(resending.begin())
    assert (again.resent, again.outcome) == (0, "done")
    resending.clock.advance(timedelta(hours=1))
    assert resending.finish(resending.begin()).resent == 2


def make_waiting(resending: Resending, **values: Any) -> UUID:
    """Make a delivery whose first try failed, and which waits for its second."""
    delivery = resending.deliveries.make("pending", 500, **values)
    resending.deliveries.add_try(delivery, 1, 500)
    return delivery


def test_all_waiting_deliveries_are_resent_oldest_first(
    resending: Resending, make_resending: Callable[[], Resending]
) -> None:
    """However old they are. Those that were not tried yet, have ended, or are tests are left out."""
    make = resending.deliveries.make
    expected = [
        make_waiting(resending, ago=40 * A_DAY, event=CANCELED),
        make("pending", None, failure="dns", ago=A_DAY),
        make_waiting(resending),
    ]
    make("pending", None, tries=0)
    make("failed", 500)
    make("succeeded", 200)
    make("pending", 500, is_test=True)
    make_resending().deliveries.make("pending", 500)
    begun = resending.retry_waiting()
    assert (begun.found, begun.is_count_exact, begun.kind) == (3, True, "waiting")
    ended = resending.finish(begun)
    assert resending.requests() == [(delivery, resend_id(begun.id, delivery)) for delivery in expected]
    assert (ended.outcome, ended.resent) == ("done", 3)
    assert resending.deliveries.run("select distinct unless_succeeded from resend_requests") == [(True,)]


def test_waiting_delivery_that_is_retried_by_schedule_meanwhile_is_still_resent_once(
    resending: Resending, clock: Clock
) -> None:
    """That retry went to the URL and with the secret of the delivery. One that succeeds meanwhile is left out, and
    so are one that fails for good and one whose first try comes only now."""
    retried, succeeded, failed = (make_waiting(resending) for _ in range(3))
    untried = resending.deliveries.make("pending", None, tries=0)
    begun = resending.retry_waiting()
    assert begun.found == 3
    clock.advance(timedelta(seconds=1))
    run = resending.deliveries.run
    run(
        "update webhook_deliveries set tries = 2, step = 3, updated_at = mizan_now() where id = %s",
        (retried,),
    )
    resending.deliveries.add_try(retried, 2, 500)
    for delivery, status in ((succeeded, "succeeded"), (failed, "failed")):
        run(
            "update webhook_deliveries set status = %s, next_due_at = null, updated_at = mizan_now() where id = %s",
            (status, delivery),
        )
    run("update webhook_deliveries set tries = 1, step = 2, last_status_code = 500 where id = %s", (untried,))
    resending.deliveries.add_try(untried, 1, 500)
    ended = resending.finish(begun)
    assert resending.resent() == [retried]
    assert (ended.outcome, ended.resent, ended.found) == ("done", 1, 3)


def test_waiting_deliveries_are_resent_once_by_several_schedulers_of_which_one_crashes(
    steady: Database, resending: Resending, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deliveries keep waiting, so only the position of the bulk resend keeps them from being taken again."""
    made = [make_waiting(resending) for _ in range(3 * BATCH)]
    begun = resending.retry_waiting()
    advance = bulk_resends._advance

    def crash(connection: Connection[Any], under_way: Any) -> int:
        advance(connection, under_way)
        raise RuntimeError("killed")

    monkeypatch.setattr(bulk_resends, "_advance", crash)
    with pytest.raises(RuntimeError):
        resending.job.run_once()
    monkeypatch.undo()
    monkeypatch.setattr(bulk_resends, "BATCH_EVERY_S", 0.0)
    monkeypatch.setattr(bulk_resends, "PAUSE_S", 0.001)
    with running_jobs(BulkResends(steady), BulkResends(steady), stop=Event()):
        eventually(lambda: resending.now(begun).outcome)
    assert resending.resent() == made


def test_waiting_deliveries_are_not_resent_without_url_or_while_paused_or_twice_at_once(
    database: Database, resending: Resending
) -> None:
    with pytest.raises(NothingWaitingError):
        resending.retry_waiting()
    for _ in range(BATCH + 1):
        make_waiting(resending)
    request_id = uuid4()
    begun = resending.retry_waiting(request_id)
    assert resending.retry_waiting(request_id).id == begun.id
    with pytest.raises(BulkResendInProgressError):
        resending.retry_waiting()
    resending.run_once()
    with database.transaction() as connection:
        pause_webhooks(connection, resending.application)
    assert resending.finish(begun).outcome == "paused"
    assert len(resending.resent()) == BATCH
    with pytest.raises(SendingRefusedError, match="paused"):
        resending.retry_waiting()
    resending.deliveries.run("update applications set webhooks_paused_at = null, webhook_url = null")
    with pytest.raises(SendingRefusedError, match="no webhook URL"):
        resending.retry_waiting()
    with database.transaction() as connection:
        assert count_waiting(connection, resending.application).count == BATCH + 1, "they still wait"
