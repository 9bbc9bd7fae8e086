"""Events that intake has not consumed for long are published again, so that a lost topic loses nothing (§2)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from services.scheduler import topic_backlog
from services.scheduler.jobs.requeue_events import EventRequeue, _PendingEvents
from services.scheduler.requeue_sweep import BATCH, PAUSE_AFTER_BATCH_S, WINDOW, RequeueThresholds
from shared.domain.intents.states import EventType
from shared.domain.kafka_principals import SCHEDULER
from shared.domain.messages import IntentEvent
from shared.domain.topics import PAYMENT_INTENT_EVENTS
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import DatabaseSettings, KafkaSettings
from stack.engines import Engines
from tests.clock import Clock
from tests.database_roles import as_role
from tests.scheduler.conftest import Outbox, Relays
from tests.scheduler.deliveries import IMPATIENT, MINUTE, Line, Tables, ids, metric
from tests.scheduler.running_jobs import running_jobs
from tests.servers import ServiceProcess
from tests.topics import TopicReader, as_principal
from tests.waiting import error_text, eventually

MakeTopics = Callable[[Sequence[Topic]], None]
OLD_S = 20 * MINUTE


@pytest.fixture
def tables(database: Database) -> Tables:
    return Tables(database)


@pytest.fixture
def job(steady: Database, kafka_settings: KafkaSettings) -> EventRequeue:
    """The topic does not exist, so the backlog is empty."""
    return EventRequeue(steady, as_principal(kafka_settings, SCHEDULER), IMPATIENT)


@pytest.fixture
def line(all_topics: KafkaSettings) -> Line:
    return Line(all_topics)


class TestOld:
    @pytest.mark.parametrize("kind", [EventType.SUCCEEDED, EventType.CANCELED])
    def test_only_events_not_taken_in_for_more_than_15_minutes_are_requeued(
        self, job: EventRequeue, tables: Tables, kind: EventType
    ) -> None:
        """The backlog is empty. Younger events may still be on the topic."""
        tables.events(age_s=14 * MINUTE, kind=kind)
        tables.events(age_s=OLD_S, kind=kind, taken_in=True)
        old = tables.events(2, age_s=16 * MINUTE, kind=kind)
        job.run_once()
        assert ids(tables.requeued_events()) == old

    @pytest.mark.parametrize("kind", sorted(set(EventType) - {EventType.SUCCEEDED, EventType.CANCELED}))
    def test_events_without_a_webhook_are_never_requeued(
        self, job: EventRequeue, tables: Tables, kind: EventType
    ) -> None:
        """Intake does not mark these as taken in."""
        tables.events(age_s=OLD_S, kind=kind)
        job.run_once()
        assert tables.requeued_events() == []

    def test_age_of_an_event_follows_the_databases_clock(
        self, job: EventRequeue, tables: Tables, outbox: Outbox, clock: Clock
    ) -> None:
        """The id of an event contains its time."""
        intent = outbox.create()
        outbox.pay(intent)
        tables.run("delete from outbox")
        job.run_once()
        assert tables.requeued_events() == []
        clock.advance(timedelta(minutes=15, seconds=1))
        job.run_once()
        (event,) = tables.requeued_events()
        assert (event.intent_uuid, event.seq, event.type) == (intent, 2, EventType.SUCCEEDED)

    def test_event_is_requeued_at_most_once_an_hour(
        self, job: EventRequeue, tables: Tables, clock: Clock
    ) -> None:
        """The hour counts from the last requeue."""
        (made,) = tables.events(age_s=OLD_S)
        job.run_once()
        tables.run("update outbox set created_at = created_at + interval '10 hours'")
        for _ in range(3):
            job.run_once()
        assert ids(tables.requeued_events()) == [made]
        clock.advance(timedelta(minutes=59))
        job.run_once()
        assert ids(tables.requeued_events()) == [made]
        clock.advance(timedelta(minutes=2))
        job.run_once()
        job.run_once()
        assert ids(tables.requeued_events()) == [made, made]

    def test_requeued_record_equals_the_original_event(
        self, job: EventRequeue, tables: Tables, relays: Relays, reader: TopicReader
    ) -> None:
        """The webhook service reads the same record as before, with the intent as key."""
        (made,) = tables.events(age_s=OLD_S, kind=EventType.CANCELED)
        ((intent, at),) = tables.run("select intent_uuid, at from intent_events")
        job.run_once()
        with relays.running():
            assert reader.read(1) == [
                IntentEvent(made, intent, tables.application, 2, EventType.CANCELED, at)
            ]

    def test_metrics_report_requeued_events_and_the_age_of_the_oldest_one(
        self, job: EventRequeue, tables: Tables
    ) -> None:
        """The gauge is 0 when all are taken in."""
        before = metric("mizan_events_republished_total")
        tables.events(age_s=5 * MINUTE)
        job.run_once()
        assert metric("mizan_webhook_intake_oldest_event_age_seconds") == pytest.approx(5 * MINUTE, abs=30)
        tables.events(3, age_s=OLD_S)
        job.run_once()
        assert metric("mizan_webhook_intake_oldest_event_age_seconds") == pytest.approx(OLD_S, abs=30)
        assert metric("mizan_events_republished_total") == before + 3
        tables.run("update intent_events set taken_in_at = mizan_now()")
        job.run_once()
        assert metric("mizan_webhook_intake_oldest_event_age_seconds") == 0


class TestBacklog:
    def test_age_of_the_oldest_unconsumed_record_defers_requeueing(
        self, line: Line, job: EventRequeue, tables: Tables
    ) -> None:
        """The backlog is 10 minutes old: an event of 20 minutes may be in it, one of 30 is not."""
        line.put(PAYMENT_INTENT_EVENTS, b"waits", age_s=10 * MINUTE, partition=4)
        in_line = tables.events(age_s=20 * MINUTE)
        lost = tables.events(age_s=30 * MINUTE)
        job.run_once()
        assert ids(tables.requeued_events()) == lost
        line.commit(PAYMENT_INTENT_EVENTS, 1, partition=4)
        job.run_once()
        assert ids(tables.requeued_events()) == lost + in_line

    def test_age_of_the_oldest_row_in_the_outbox_defers_requeueing(
        self, job: EventRequeue, tables: Tables
    ) -> None:
        """An event that is still in the outbox is not lost, however long Kafka was unavailable."""
        tables.run(
            """insert into outbox (topic, key, payload, created_at)
               values ('any', 'k', '{}', statement_timestamp() - interval '10 minutes')"""
        )
        waiting = tables.events(age_s=20 * MINUTE)
        lost = tables.events(age_s=30 * MINUTE)
        job.run_once()
        assert ids(tables.requeued_events()) == lost
        tables.run("delete from outbox where topic = 'any'")
        job.run_once()
        assert ids(tables.requeued_events()) == lost + waiting

    def test_events_of_a_recreated_topic_are_requeued(
        self, line: Line, job: EventRequeue, tables: Tables, make_topics: MakeTopics
    ) -> None:
        """Everything on the deleted topic is requeued, though the group committed an offset beyond the end."""
        line.put(PAYMENT_INTENT_EVENTS, *[b"gone"] * 5, age_s=3600)
        made = tables.events(5, age_s=30 * MINUTE)
        job.run_once()
        assert tables.requeued_events() == []
        line.delete(PAYMENT_INTENT_EVENTS)
        eventually(lambda: not line.exists(PAYMENT_INTENT_EVENTS))
        make_topics([PAYMENT_INTENT_EVENTS])
        line.commit(PAYMENT_INTENT_EVENTS, 3)
        job.run_once()
        assert ids(tables.requeued_events()) == made

    def test_kafka_is_not_queried_unless_an_event_may_be_requeued(
        self,
        steady: Database,
        kafka_settings: KafkaSettings,
        tables: Tables,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Not if nothing is pending, nothing is old, or all was requeued within the hour."""
        monkeypatch.setattr(topic_backlog, "_TIMEOUT_S", 0.5)
        job = EventRequeue(steady, replace(kafka_settings, bootstrap_servers="127.0.0.1:1"), IMPATIENT)
        job.run_once()
        tables.events(3, age_s=10 * MINUTE)
        tables.events(3, age_s=OLD_S, taken_in=True)
        tables.events(3, age_s=OLD_S, requeued_s_ago=30 * MINUTE)
        job.run_once()
        tables.events(age_s=OLD_S)
        with pytest.raises(KafkaUnavailableError):
            job.run_once()
        assert tables.requeued_events() == []

    @pytest.mark.kills
    def test_job_fails_while_kafka_is_unavailable_and_recovers(
        self, killable_engines: Engines, line: Line, job: EventRequeue, tables: Tables
    ) -> None:
        """Nothing is requeued while the backlog is unknown; the job reports its failure and recovers."""
        line.put(PAYMENT_INTENT_EVENTS, b"waits", age_s=60)
        made = tables.events(age_s=OLD_S)
        killable_engines.kafka.kill()
        with running_jobs(job) as (runner,):
            eventually(lambda: "the backlog cannot be measured" in error_text(runner.check, Exception))
            assert tables.requeued_events() == []
            killable_engines.kafka.start()
            eventually(lambda: ids(tables.requeued_events()) == made)
            eventually(lambda: not error_text(runner.check, Exception))


class TestPace:
    def test_one_batch_a_second_with_the_oldest_events_first(self, job: EventRequeue, tables: Tables) -> None:
        """The pace does not depend on how many events are old."""
        later = tables.events(BATCH + 3, age_s=OLD_S)
        first = tables.events(BATCH, age_s=OLD_S + 60)
        for expected in (first, first + later[:BATCH], first + later):
            assert job.run_once() >= PAUSE_AFTER_BATCH_S == 1
            assert [event.id for event in tables.requeued_events()] == expected

    def test_recently_requeued_events_are_skipped_once_per_sweep(
        self, steady: Database, kafka_settings: KafkaSettings, tables: Tables
    ) -> None:
        """The sweep reads a window at a time and keeps its position, so it soon reaches the event behind them."""
        job = EventRequeue(
            steady, as_principal(kafka_settings, SCHEDULER), RequeueThresholds(sweep_interval_s=600)
        )
        tables.events(2 * WINDOW, age_s=OLD_S + 60, requeued_s_ago=60)
        (behind,) = tables.events(age_s=OLD_S)
        assert 0 < job.run_once() < PAUSE_AFTER_BATCH_S
        assert 0 < job.run_once() < PAUSE_AFTER_BATCH_S
        assert tables.requeued_events() == []
        assert job.run_once() == PAUSE_AFTER_BATCH_S
        assert ids(tables.requeued_events()) == [behind]
        assert 590 < job.run_once() <= 600

    def test_locked_events_are_left_to_the_next_sweep(
        self, job: EventRequeue, tables: Tables, database_settings: DatabaseSettings
    ) -> None:
        """Intake takes one of them in: the sweep does not wait for it, and does not requeue it."""
        held, ending, going = tables.events(3, age_s=OLD_S)
        with psycopg.connect(database_settings.url) as somebody:
            somebody.execute("select from intent_events where id = %s for no key update", (held,))
            somebody.execute("update intent_events set taken_in_at = mizan_now() where id = %s", (ending,))
            job.run_once()
            assert ids(tables.requeued_events()) == [going]
        job.run_once()
        assert ids(tables.requeued_events()) == [held, going]

    def test_events_changed_since_they_were_read_are_not_requeued(
        self, steady: Database, kafka_settings: KafkaSettings, tables: Tables
    ) -> None:
        """While the backlog is measured, one is taken in and one is requeued by another scheduler."""
        not_taken_in = _PendingEvents(steady, as_principal(kafka_settings, SCHEDULER), IMPATIENT)
        taken_in, republished, still = tables.events(3, age_s=OLD_S)
        window = not_taken_in.read_window(None)
        assert window.ids == [taken_in, republished, still]
        tables.run("update intent_events set taken_in_at = mizan_now() where id = %s", (taken_in,))
        tables.run("update intent_events set republished_at = mizan_now() where id = %s", (republished,))
        assert not_taken_in.requeue(window.ids, 900) == 1
        assert ids(tables.requeued_events()) == [still]

    def test_several_schedulers_requeue_each_event_once(
        self, database_settings: DatabaseSettings, kafka_settings: KafkaSettings, tables: Tables
    ) -> None:
        """They read the same events at the same time and share them."""
        made = tables.events(4 * BATCH, age_s=OLD_S)
        databases = [
            Database(as_role("mizan_scheduler", database_settings), "scheduler", **STABLE_PLANS)
            for _ in range(3)
        ]
        with running_jobs(
            *(
                EventRequeue(database, as_principal(kafka_settings, SCHEDULER), IMPATIENT)
                for database in databases
            )
        ):
            eventually(lambda: len(tables.requeued_events()) >= len(made))
        for database in databases:
            database.close()
        assert ids(tables.requeued_events()) == made


@pytest.mark.stack
def test_scheduler_process_requeues_events(
    scheduler: ServiceProcess, tables: Tables, reader: TopicReader
) -> None:
    """With the default thresholds, as a process."""
    tables.events(age_s=10 * MINUTE)
    (old,) = tables.events(age_s=OLD_S)
    with scheduler.running():
        assert ids(reader.events(1)) == [old]
        eventually(lambda: scheduler.status() == 200)
        assert "mizan_events_republished_total 1.0" in scheduler.page("metrics")
