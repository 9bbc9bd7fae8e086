"""Pending deliveries are requeued if their record is lost, or once their application is resumed (§2)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import time
from uuid import uuid4

import psycopg
import pytest

from services.scheduler import topic_backlog
from services.scheduler.jobs.requeue_deliveries import DeliveryRequeue, _OverdueDeliveries
from services.scheduler.requeue_sweep import BATCH, PAUSE_AFTER_BATCH_S, WINDOW, RequeueThresholds
from shared.domain.kafka_principals import SCHEDULER
from shared.domain.messages import DeliveryDue
from shared.domain.topics import WEBHOOKS_DELAY, WEBHOOKS_DELIVER, WEBHOOKS_SLOW
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import DatabaseSettings, KafkaSettings
from stack.engines import Engines
from tests.clock import Clock
from tests.database_roles import as_role
from tests.scheduler.conftest import Relays
from tests.scheduler.deliveries import IMPATIENT, MINUTE, Line, Tables, ids, metric
from tests.scheduler.running_jobs import running_jobs
from tests.servers import ServiceProcess
from tests.topics import TopicReader, as_principal
from tests.waiting import error_text, eventually

MakeTopics = Callable[[Sequence[Topic]], None]
TOPICS = (WEBHOOKS_DELIVER, WEBHOOKS_SLOW, *WEBHOOKS_DELAY)
LONG_OVERDUE_S = 20 * MINUTE
HOUR = timedelta(hours=1)


@pytest.fixture
def tables(database: Database) -> Tables:
    return Tables(database)


@pytest.fixture
def job(steady: Database, kafka_settings: KafkaSettings) -> DeliveryRequeue:
    """No topic exists, so the backlog is empty."""
    return DeliveryRequeue(steady, as_principal(kafka_settings, SCHEDULER), IMPATIENT)


@pytest.fixture
def line(all_topics: KafkaSettings) -> Line:
    return Line(all_topics)


@pytest.fixture
def without_kafka(kafka_settings: KafkaSettings, monkeypatch: pytest.MonkeyPatch) -> KafkaSettings:
    """Nothing listens at this address, so that every Kafka call fails quickly."""
    monkeypatch.setattr(topic_backlog, "_TIMEOUT_S", 0.5)
    return replace(kafka_settings, bootstrap_servers="127.0.0.1:1")


def delayed(due_in_s: float) -> DeliveryDue:
    return DeliveryDue(uuid4(), uuid4(), 2, datetime.fromtimestamp(time() + due_in_s, UTC))


class TestOverdue:
    def test_only_deliveries_overdue_by_more_than_15_minutes_are_requeued(
        self, job: DeliveryRequeue, tables: Tables
    ) -> None:
        """The backlog is empty. A delivery due later, or overdue for less, may still be on the topic."""
        tables.deliveries(overdue_s=-3600)
        tables.deliveries(overdue_s=14 * MINUTE)
        overdue = tables.deliveries(2, overdue_s=16 * MINUTE, step=4)
        job.run_once()
        assert ids(tables.requeued()) == overdue

    def test_overdue_time_is_exact_by_the_databases_clock(
        self, job: DeliveryRequeue, tables: Tables, clock: Clock
    ) -> None:
        clock.stop_at(datetime(2031, 5, 17, 12, tzinfo=UTC))
        (made,) = tables.deliveries(overdue_s=15 * MINUTE)
        job.run_once()
        assert tables.requeued() == []
        clock.stop_at(datetime(2031, 5, 17, 12, 0, 1, tzinfo=UTC))
        job.run_once()
        assert ids(tables.requeued()) == [made]

    @pytest.mark.parametrize("status", ["succeeded", "failed"])
    def test_succeeded_and_failed_deliveries_are_never_requeued(
        self, job: DeliveryRequeue, tables: Tables, status: str
    ) -> None:
        """Both states are final."""
        tables.deliveries(overdue_s=LONG_OVERDUE_S, status=status)
        tables.deliveries(overdue_s=LONG_OVERDUE_S, status=status, set_aside=True)
        job.run_once()
        job.run_once()
        assert tables.requeued() == []

    def test_delivery_is_requeued_at_most_once_an_hour(
        self, job: DeliveryRequeue, tables: Tables, clock: Clock
    ) -> None:
        """The hour counts from the last requeue."""
        (made,) = tables.deliveries(overdue_s=LONG_OVERDUE_S)
        for _ in range(3):
            job.run_once()
        assert ids(tables.requeued()) == [made]
        clock.advance(timedelta(minutes=59))
        job.run_once()
        assert ids(tables.requeued()) == [made]
        clock.advance(timedelta(minutes=2))
        job.run_once()
        job.run_once()
        assert ids(tables.requeued()) == [made, made]

    def test_deliveries_of_a_paused_application_are_requeued_after_it_is_resumed(
        self, job: DeliveryRequeue, tables: Tables
    ) -> None:
        """Deliveries of other applications are requeued meanwhile."""
        other = tables.make_application()
        paused = tables.deliveries(overdue_s=LONG_OVERDUE_S)
        going = tables.deliveries(overdue_s=LONG_OVERDUE_S, application=other)
        tables.pause()
        job.run_once()
        assert ids(tables.requeued()) == going
        tables.resume()
        job.run_once()
        assert ids(tables.requeued()) == paused + going

    def test_metrics_report_requeued_deliveries_and_the_most_overdue_one(
        self, job: DeliveryRequeue, tables: Tables, clock: Clock
    ) -> None:
        """Deliveries of a paused application do not count; the gauge is 0 when none is overdue."""
        before = metric("mizan_webhook_requeued_total")
        tables.deliveries(overdue_s=10 * MINUTE)
        tables.deliveries(overdue_s=-MINUTE)
        paused = tables.make_application()
        tables.deliveries(3, overdue_s=LONG_OVERDUE_S, application=paused)
        tables.pause(paused)
        job.run_once()
        assert metric("mizan_webhook_overdue_seconds") == pytest.approx(10 * MINUTE, abs=30)
        assert metric("mizan_webhook_requeued_total") == before
        tables.resume(paused)
        job.run_once()
        assert metric("mizan_webhook_overdue_seconds") == pytest.approx(LONG_OVERDUE_S, abs=30)
        assert metric("mizan_webhook_requeued_total") == before + 3
        tables.run("update webhook_deliveries set status = 'succeeded', next_due_at = null")
        job.run_once()
        assert metric("mizan_webhook_overdue_seconds") == 0

    def test_requeued_record_names_the_delivery_and_its_step(
        self, line: Line, job: DeliveryRequeue, tables: Tables, relays: Relays
    ) -> None:
        """The webhook service treats the record like that of a retry."""
        (made,) = tables.deliveries(overdue_s=LONG_OVERDUE_S, step=7)
        ((due_at,),) = tables.run("select next_due_at from webhook_deliveries")
        job.run_once()
        reader = TopicReader(line.settings, WEBHOOKS_DELIVER.name)
        with relays.running():
            assert reader.read(1) == [DeliveryDue(made, tables.application, 7, due_at)]
        reader.close()


class TestBacklog:
    def test_age_of_the_oldest_unconsumed_record_defers_requeueing(
        self, line: Line, job: DeliveryRequeue, tables: Tables
    ) -> None:
        """The backlog is 10 minutes old: a delivery overdue by 20 may be in it, one overdue by 30 is not."""
        line.put(WEBHOOKS_DELIVER, b"waits", age_s=10 * MINUTE, partition=2)
        tables.deliveries(overdue_s=20 * MINUTE)
        lost = tables.deliveries(overdue_s=30 * MINUTE)
        job.run_once()
        assert ids(tables.requeued()) == lost

    def test_sweep_ends_at_the_first_delivery_that_may_be_in_the_backlog(
        self, line: Line, steady: Database, tables: Tables
    ) -> None:
        """The first is the most overdue: if its record may be in the backlog, so may all after it."""
        job = DeliveryRequeue(
            steady, line.settings, RequeueThresholds(sweep_interval_s=600, poll_interval_s=600)
        )
        line.put(WEBHOOKS_DELIVER, b"waits", age_s=3600)
        tables.deliveries(BATCH + 1, overdue_s=LONG_OVERDUE_S)
        assert job.run_once() > 500
        assert tables.requeued() == []

    def test_backlog_of_any_delivery_topic_defers_requeueing(
        self, line: Line, job: DeliveryRequeue, tables: Tables
    ) -> None:
        """There are ten such topics, and each one alone defers."""
        made = tables.deliveries(overdue_s=LONG_OVERDUE_S)
        for topic in TOPICS:
            line.put(topic, delayed(due_in_s=-10 * MINUTE), age_s=10 * MINUTE)
            job.run_once()
            assert tables.requeued() == [], topic.name
            line.commit(topic, 1)
        job.run_once()
        assert ids(tables.requeued()) == made

    def test_delivery_is_requeued_once_the_backlog_is_consumed(
        self, line: Line, job: DeliveryRequeue, tables: Tables
    ) -> None:
        """Only the committed offset of the group changes between the two sweeps."""
        line.put(WEBHOOKS_DELIVER, b"waits", age_s=2 * 3600)
        made = tables.deliveries(overdue_s=LONG_OVERDUE_S)
        job.run_once()
        assert tables.requeued() == []
        line.commit(WEBHOOKS_DELIVER, 1)
        job.run_once()
        assert ids(tables.requeued()) == made

    def test_delayed_record_defers_requeueing_only_when_it_is_overdue(
        self, line: Line, job: DeliveryRequeue, tables: Tables
    ) -> None:
        """A record written two hours ago may have waited on the delay topic for its due time."""
        line.put(WEBHOOKS_DELAY[5], delayed(due_in_s=60), age_s=2 * 3600)
        made = tables.deliveries(overdue_s=LONG_OVERDUE_S)
        job.run_once()
        assert ids(tables.requeued()) == made
        line.put(WEBHOOKS_DELAY[5], delayed(due_in_s=-10 * MINUTE), age_s=0, partition=1)
        tables.deliveries(overdue_s=LONG_OVERDUE_S)
        job.run_once()
        assert ids(tables.requeued()) == made

    def test_backlog_of_a_recreated_topic_counts_despite_old_offsets(
        self, line: Line, job: DeliveryRequeue, tables: Tables, make_topics: MakeTopics
    ) -> None:
        """The committed offset is beyond the end, so the group reads from the first record: all of it is backlog."""
        line.put(WEBHOOKS_DELIVER, *[b"gone"] * 5)
        line.delete(WEBHOOKS_DELIVER)
        eventually(lambda: not line.exists(WEBHOOKS_DELIVER))
        make_topics([WEBHOOKS_DELIVER])
        line.commit(WEBHOOKS_DELIVER, 5)
        line.put(WEBHOOKS_DELIVER, b"waits", age_s=10 * MINUTE)
        in_line = tables.deliveries(overdue_s=20 * MINUTE)
        lost = tables.deliveries(overdue_s=30 * MINUTE)
        job.run_once()
        assert ids(tables.requeued()) == lost
        line.commit(WEBHOOKS_DELIVER, 1)
        job.run_once()
        assert ids(tables.requeued()) == in_line + lost

    def test_kafka_is_not_queried_unless_a_delivery_may_be_requeued(
        self, steady: Database, without_kafka: KafkaSettings, tables: Tables
    ) -> None:
        """Not if nothing is pending, nothing is overdue for long, or all was requeued within the hour."""
        job = DeliveryRequeue(steady, without_kafka, IMPATIENT)
        job.run_once()
        tables.deliveries(3, overdue_s=-MINUTE)
        tables.deliveries(3, overdue_s=10 * MINUTE)
        tables.deliveries(3, overdue_s=LONG_OVERDUE_S, requeued_s_ago=30 * MINUTE)
        job.run_once()
        paused = tables.make_application()
        tables.pause(paused)
        tables.deliveries(3, overdue_s=LONG_OVERDUE_S, application=paused)
        job.run_once()
        tables.deliveries(overdue_s=LONG_OVERDUE_S)
        with pytest.raises(KafkaUnavailableError):
            job.run_once()
        assert tables.requeued() == []

    def test_measured_backlog_is_reused_for_some_seconds(
        self, line: Line, steady: Database, tables: Tables
    ) -> None:
        """It is not measured again for each batch."""
        patient = DeliveryRequeue(steady, line.settings, replace(IMPATIENT, poll_interval_s=600))
        tables.deliveries(2 * BATCH, overdue_s=LONG_OVERDUE_S)
        patient.run_once()
        line.put(WEBHOOKS_DELIVER, b"waits", age_s=3600)
        patient.run_once()
        assert len(tables.requeued()) == 2 * BATCH

    def test_overdue_gauge_is_updated_while_kafka_is_unavailable(
        self, steady: Database, without_kafka: KafkaSettings, tables: Tables, clock: Clock
    ) -> None:
        """Operators need the gauge most during an outage."""
        job = DeliveryRequeue(steady, without_kafka, RequeueThresholds())
        tables.deliveries(overdue_s=LONG_OVERDUE_S)
        for hours in (0, 1):
            with pytest.raises(KafkaUnavailableError):
                job.run_once()
            told = metric("mizan_webhook_overdue_seconds")
            assert told == pytest.approx(LONG_OVERDUE_S + hours * 3600, abs=60)
            clock.advance(HOUR)

    @pytest.mark.kills
    def test_job_fails_while_kafka_is_unavailable_and_recovers(
        self, killable_engines: Engines, line: Line, job: DeliveryRequeue, tables: Tables
    ) -> None:
        """Nothing is requeued while the backlog is unknown; the job reports its failure and recovers."""
        line.put(WEBHOOKS_DELIVER, b"waits", age_s=60)
        made = tables.deliveries(overdue_s=LONG_OVERDUE_S)
        killable_engines.kafka.kill()
        with running_jobs(job) as (runner,):
            eventually(lambda: "the backlog cannot be measured" in error_text(runner.check, Exception))
            assert tables.requeued() == []
            killable_engines.kafka.start()
            eventually(lambda: ids(tables.requeued()) == made)
            eventually(lambda: not error_text(runner.check, Exception))


class TestPace:
    def test_one_batch_a_second_with_the_most_overdue_deliveries_first(
        self, job: DeliveryRequeue, tables: Tables
    ) -> None:
        """The pace does not depend on how many deliveries are overdue."""
        later = tables.deliveries(BATCH, overdue_s=LONG_OVERDUE_S)
        first = tables.deliveries(BATCH, overdue_s=LONG_OVERDUE_S + 60)
        last = tables.deliveries(3, overdue_s=LONG_OVERDUE_S - 60)
        assert job.run_once() >= PAUSE_AFTER_BATCH_S == 1
        assert ids(tables.requeued()) == first
        assert job.run_once() >= PAUSE_AFTER_BATCH_S
        assert ids(tables.requeued()) == later + first
        assert job.run_once() >= PAUSE_AFTER_BATCH_S
        assert ids(tables.requeued()) == sorted(first + later + last)
        late = tables.deliveries(overdue_s=LONG_OVERDUE_S + 120)
        job.run_once()  # the next sweep starts from the beginning
        assert ids(tables.requeued()) == sorted(first + later + last + late)

    def test_recently_requeued_deliveries_are_skipped_once_per_sweep(
        self, steady: Database, kafka_settings: KafkaSettings, tables: Tables
    ) -> None:
        """The sweep reads a window at a time and keeps its position, so it soon reaches the delivery behind them."""
        job = DeliveryRequeue(
            steady,
            as_principal(kafka_settings, SCHEDULER),
            RequeueThresholds(sweep_interval_s=600, poll_interval_s=600),
        )
        tables.deliveries(2 * WINDOW, overdue_s=3 * LONG_OVERDUE_S, requeued_s_ago=60)
        (behind,) = tables.deliveries(overdue_s=LONG_OVERDUE_S)
        assert 0 < job.run_once() < PAUSE_AFTER_BATCH_S
        assert 0 < job.run_once() < PAUSE_AFTER_BATCH_S
        assert tables.requeued() == []
        assert job.run_once() == PAUSE_AFTER_BATCH_S
        assert ids(tables.requeued()) == [behind]
        assert metric("mizan_webhook_overdue_seconds") == pytest.approx(3 * LONG_OVERDUE_S, abs=30)

    def test_overdue_gauge_is_updated_during_a_long_sweep(
        self, steady: Database, kafka_settings: KafkaSettings, tables: Tables
    ) -> None:
        """A sweep over a million deliveries takes half an hour."""
        job = DeliveryRequeue(
            steady, as_principal(kafka_settings, SCHEDULER), RequeueThresholds(sweep_interval_s=0.2)
        )
        tables.deliveries(2 * BATCH, overdue_s=LONG_OVERDUE_S)
        job.run_once()
        tables.deliveries(overdue_s=3 * LONG_OVERDUE_S, requeued_s_ago=60)
        told_at_first = metric("mizan_webhook_overdue_seconds")
        tables.deliveries(100 * BATCH, overdue_s=LONG_OVERDUE_S - 60)
        eventually(lambda: job.run_once() and metric("mizan_webhook_overdue_seconds") > 2 * told_at_first)
        assert len(tables.requeued()) < 50 * BATCH

    def test_sweep_continues_past_the_deliveries_of_a_paused_application(
        self, steady: Database, kafka_settings: KafkaSettings, tables: Tables
    ) -> None:
        """Nothing is overdue enough to be requeued, but the gauge reports the deliveries that count."""
        job = DeliveryRequeue(
            steady,
            as_principal(kafka_settings, SCHEDULER),
            RequeueThresholds(sweep_interval_s=600, poll_interval_s=600),
        )
        tables.deliveries(WINDOW, overdue_s=10 * MINUTE, set_aside=True)
        tables.pause()
        tables.deliveries(overdue_s=5 * MINUTE, application=tables.make_application())
        assert 0 < job.run_once() < PAUSE_AFTER_BATCH_S
        assert job.run_once() > PAUSE_AFTER_BATCH_S
        assert metric("mizan_webhook_overdue_seconds") == pytest.approx(5 * MINUTE, abs=30)

    def test_sweep_passes_many_deliveries_with_equal_due_times(
        self, job: DeliveryRequeue, tables: Tables, clock: Clock
    ) -> None:
        """More than a batch and more than a window are due at one instant."""
        clock.stop_at(clock.now())
        requeued = tables.deliveries(WINDOW, overdue_s=LONG_OVERDUE_S, requeued_s_ago=60)
        made = tables.deliveries(BATCH + 1, overdue_s=LONG_OVERDUE_S)
        assert requeued[-1] < made[0]
        for _ in range(3):
            job.run_once()
        assert ids(tables.requeued()) == made

    def test_next_sweep_starts_after_the_sweep_interval(
        self, steady: Database, kafka_settings: KafkaSettings, tables: Tables
    ) -> None:
        """A delivery that becomes overdue behind the current position waits for the next sweep."""
        patient = DeliveryRequeue(
            steady, as_principal(kafka_settings, SCHEDULER), replace(RequeueThresholds(), poll_interval_s=30)
        )
        assert 29 < patient.run_once() <= 30
        tables.deliveries(overdue_s=LONG_OVERDUE_S)
        patient.run_once()
        assert tables.requeued() == []
        soon = DeliveryRequeue(
            steady, as_principal(kafka_settings, SCHEDULER), RequeueThresholds(sweep_interval_s=0.2)
        )
        soon.run_once()
        assert len(tables.requeued()) == 1
        tables.deliveries(overdue_s=LONG_OVERDUE_S + 60)
        eventually(lambda: soon.run_once() and len(tables.requeued()) == 2)

    def test_locked_deliveries_are_left_to_the_next_sweep(
        self, job: DeliveryRequeue, tables: Tables, database_settings: DatabaseSettings
    ) -> None:
        """The webhook service records a try: the sweep does not wait, and does not requeue if the try succeeds."""
        held, ending, going = tables.deliveries(3, overdue_s=LONG_OVERDUE_S)
        with psycopg.connect(database_settings.url) as somebody:
            somebody.execute("update webhook_deliveries set tries = 1 where id = %s", (held,))
            somebody.execute(
                "update webhook_deliveries set status = 'succeeded', next_due_at = null where id = %s",
                (ending,),
            )
            job.run_once()
            assert ids(tables.requeued()) == [going]
        job.run_once()
        assert ids(tables.requeued()) == [held, going]

    def test_deliveries_changed_since_they_were_read_are_not_requeued(
        self, steady: Database, kafka_settings: KafkaSettings, tables: Tables
    ) -> None:
        """During the measurement one succeeds, one is tried, one is set aside, one is requeued by another scheduler."""
        overdue = _OverdueDeliveries(steady, as_principal(kafka_settings, SCHEDULER), IMPATIENT)
        found = tables.deliveries(5, overdue_s=LONG_OVERDUE_S)
        window = overdue.read_window(None)
        assert window.ids == found
        for delivery, change in zip(
            found,
            (
                "status = 'succeeded', next_due_at = null",
                "step = 2, next_due_at = mizan_now()",
                "set_aside_at = mizan_now()",
                "requeued_at = mizan_now()",
            ),
            strict=False,
        ):
            tables.run(f"update webhook_deliveries set {change} where id = %s", (delivery,))
        assert overdue.requeue(window.ids, 900) == 1
        assert ids(tables.requeued()) == found[4:]

    def test_several_schedulers_requeue_each_delivery_once(
        self, database_settings: DatabaseSettings, kafka_settings: KafkaSettings, tables: Tables
    ) -> None:
        """They read the same deliveries at the same time and share them."""
        other = tables.make_application()
        overdue = tables.deliveries(3 * BATCH, overdue_s=LONG_OVERDUE_S)
        set_aside = tables.deliveries(3 * BATCH, overdue_s=LONG_OVERDUE_S, application=other, set_aside=True)
        databases = [
            Database(as_role("mizan_scheduler", database_settings), "scheduler", **STABLE_PLANS)
            for _ in range(3)
        ]
        with running_jobs(
            *(
                DeliveryRequeue(database, as_principal(kafka_settings, SCHEDULER), IMPATIENT)
                for database in databases
            )
        ):
            eventually(lambda: len(tables.requeued()) >= len(overdue + set_aside))
            eventually(lambda: not tables.set_aside())
        for database in databases:
            database.close()
        assert ids(tables.requeued()) == sorted(overdue + set_aside)


class TestSetAside:
    def test_deliveries_set_aside_are_requeued_as_soon_as_their_application_is_resumed(
        self, job: DeliveryRequeue, tables: Tables
    ) -> None:
        """Not before, and even if overdue by a second only; afterwards they are no longer set aside."""
        before = metric("mizan_webhook_resumed_total")
        made = tables.deliveries(3, overdue_s=1, step=3, set_aside=True)
        tables.pause()
        job.run_once()
        assert (tables.requeued(), tables.set_aside()) == ([], made)
        tables.resume()
        job.run_once()
        assert (ids(tables.requeued()), tables.set_aside()) == (made, [])
        assert {message.step for message in tables.requeued()} == {3}
        assert metric("mizan_webhook_resumed_total") == before + 3
        job.run_once()
        assert len(tables.requeued()) == 3

    def test_resumed_deliveries_are_requeued_without_kafka(
        self, steady: Database, without_kafka: KafkaSettings, tables: Tables
    ) -> None:
        """Their records were consumed when they were set aside, so none is on the topic."""
        made = tables.deliveries(overdue_s=LONG_OVERDUE_S, set_aside=True)
        job = DeliveryRequeue(steady, without_kafka, IMPATIENT)
        job.run_once()
        assert ids(tables.requeued()) == made
        job.run_once()

    def test_overdue_and_resumed_deliveries_do_not_delay_each_other(
        self, job: DeliveryRequeue, tables: Tables
    ) -> None:
        """Batches of overdue and of resumed deliveries alternate."""
        other = tables.make_application()
        tables.deliveries(10 * BATCH, overdue_s=LONG_OVERDUE_S)
        tables.deliveries(10 * BATCH, overdue_s=1, application=other, set_aside=True)
        for _ in range(4):
            assert job.run_once() == PAUSE_AFTER_BATCH_S
        told = [message.application_id for message in tables.requeued()]
        assert sorted(map(told.count, (tables.application, other))) == [2 * BATCH, 2 * BATCH]

    def test_delivery_set_aside_twice_is_requeued_twice_within_the_hour(
        self, job: DeliveryRequeue, tables: Tables
    ) -> None:
        """Paused and resumed twice: the limit of once an hour is for lost records only."""
        (made,) = tables.deliveries(overdue_s=1, set_aside=True)
        job.run_once()
        tables.run("update webhook_deliveries set set_aside_at = mizan_now()")
        job.run_once()
        assert ids(tables.requeued()) == [made, made]

    def test_applications_take_turns_when_resumed_deliveries_are_requeued(
        self, job: DeliveryRequeue, tables: Tables
    ) -> None:
        """Each batch starts with the next application, and is full while there are enough deliveries."""
        small, great = tables.make_application(), tables.application
        assert great < small
        tables.deliveries(3 * BATCH, overdue_s=1, application=great, set_aside=True)
        tables.deliveries(3, overdue_s=1, application=small, set_aside=True)
        for turn, expected in enumerate((BATCH, 2 * BATCH, 3 * BATCH, 3 * BATCH + 3), start=1):
            job.run_once()
            assert len(tables.requeued()) == expected
            told = [message.application_id for message in tables.requeued()]
            assert told.count(small) == (0 if turn == 1 else 3)
        assert tables.set_aside() == []
        assert len(set(ids(tables.requeued()))) == 3 * BATCH + 3

    def test_delivery_that_ended_or_has_a_later_step_is_only_no_longer_set_aside(
        self, job: DeliveryRequeue, tables: Tables
    ) -> None:
        """It was resent, or a repeat of its record was tried after the application was resumed."""
        tables.deliveries(overdue_s=60, set_aside=True, status="succeeded")
        tables.deliveries(overdue_s=60, set_aside=True, status="failed")
        tables.deliveries(overdue_s=-60, set_aside=True, step=2)
        job.run_once()
        assert (tables.requeued(), tables.set_aside()) == ([], [])
        assert tables.run("select from webhook_deliveries where requeued_at is not null") == []

    def test_locked_set_aside_deliveries_are_left_to_the_next_run(
        self, job: DeliveryRequeue, tables: Tables, database_settings: DatabaseSettings
    ) -> None:
        """The job does not wait for the lock."""
        held, going = tables.deliveries(2, overdue_s=1, set_aside=True)
        with psycopg.connect(database_settings.url) as somebody:
            somebody.execute("select from webhook_deliveries where id = %s for no key update", (held,))
            job.run_once()
            assert ids(tables.requeued()) == [going]
        job.run_once()
        assert ids(tables.requeued()) == [held, going]


@pytest.fixture
def reader(kafka_settings: KafkaSettings, all_topics: KafkaSettings) -> Iterator[TopicReader]:
    made = TopicReader(kafka_settings, WEBHOOKS_DELIVER.name)
    yield made
    made.close()


@pytest.mark.stack
def test_scheduler_process_requeues_deliveries(
    scheduler: ServiceProcess, tables: Tables, reader: TopicReader
) -> None:
    """With the default thresholds, as a process."""
    tables.deliveries(overdue_s=10 * MINUTE)
    (overdue,) = tables.deliveries(overdue_s=LONG_OVERDUE_S)
    (set_aside,) = tables.deliveries(overdue_s=1, set_aside=True)
    with scheduler.running():
        messages = reader.read(2)
        eventually(lambda: scheduler.status() == 200)
        assert "mizan_webhook_requeued_total 1.0" in scheduler.page("metrics")
    assert sorted(message.id for message in messages if isinstance(message, DeliveryDue)) == [
        overdue,
        set_aside,
    ]
