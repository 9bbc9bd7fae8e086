"""Crashes at any moment: every delivery gets its outcome, duplicates have the same id, nothing is early."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from uuid import UUID, uuid4

import psycopg
import pytest

from services.webhooks.http.client import TryResult
from services.webhooks.outgoing import to_deliver
from services.webhooks.pipeline import handler
from services.webhooks.pipeline.queries import ScheduledTry, record_tries
from services.webhooks.retry_schedule import decide_after_try
from shared.domain.dead_letters import producer
from shared.domain.messages import DeadLetter, DeliveryDue, DeliveryExhausted, encode
from shared.domain.topics import (
    DEAD_LETTERS,
    PAYMENT_INTENT_EVENTS,
    WEBHOOKS_DEAD,
    WEBHOOKS_DELAY,
    WEBHOOKS_DELIVER,
)
from shared.platform.database.pool import Database
from shared.platform.kafka import consumer_loop
from shared.platform.kafka.clients import topic_name
from shared.platform.kafka.producer import OutgoingRecord
from shared.platform.settings import DatabaseSettings
from stack.engines import Engines
from tests.servers import ServiceProcess
from tests.topics import TopicReader, delete_topic
from tests.waiting import eventually
from tests.webhooks.conftest import DELAYS, FIRST_TRY, ONE_RETRY, TWO_RETRIES, MakeMerchant, Webhooks
from tests.webhooks.merchants import Merchant, first_tries, ids_in, webhook_events
from tests.webhooks.receivers import Receiver, Reply

LONG = (60.0,) * 8
StartProcess = Callable[[], "subprocess.Popen[bytes]"]


@pytest.fixture
def start_process(webhooks: Webhooks, repository_root: Path) -> Iterator[StartProcess]:
    """Start the service as a process of its own, which can be killed."""
    settings = webhooks.settings
    with ExitStack() as stack:

        def start() -> "subprocess.Popen[bytes]":
            service = ServiceProcess(
                "services.webhooks",
                repository_root,
                settings.database,
                settings.kafka,
                MIZAN_SECRET_KEYS=settings.secret_keys[0],
                WEBHOOK_ALLOW_PRIVATE="true",
                WEBHOOK_RETRY_DELAYS=",".join(map(str, DELAYS)),
            )
            process = stack.enter_context(service.running())
            eventually(lambda: service.status() == 200)
            return process

        yield start


class TestKilledAtAnyMoment:
    @pytest.mark.kills
    @pytest.mark.stack
    def test_every_delivery_gets_its_outcome_despite_kills(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver, start_process: StartProcess
    ) -> None:
        """SIGKILL, several times, while some tries fail and are retried."""
        random = Random(6)  # reproducible
        refused: Counter[bytes] = Counter()

        def answer(request: object) -> Reply:
            body = receiver.requests[-1].body
            refused[body] += 1
            return Reply(500 if refused[body] <= body[10] % 3 else 200, delay_s=random.uniform(0, 0.05))

        receiver.answer = answer
        delivery_ids = [merchant.create_event() for _ in range(400)]
        with webhooks.running_relay():
            for _ in range(3):
                enough = len(receiver.requests) + random.randint(50, 150)
                process = start_process()
                eventually(lambda enough=enough: len(receiver.requests) >= enough)  # type: ignore[misc]
                process.kill()
                process.wait()
            start_process()
            eventually(lambda: merchant.statuses() == {"succeeded": 400}, 90)
        assert set(ids_in(receiver)) == set(delivery_ids)
        for one in delivery_ids:
            numbers = [made.number for made in merchant.tries(one)]
            steps = [made.step for made in merchant.tries(one)]
            assert numbers == steps == list(range(1, len(numbers) + 1))

    def test_kill_between_the_delivery_row_and_its_first_try_loses_nothing(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver, database: Database
    ) -> None:
        """Intake reads the event again."""
        delivery_id = merchant.create_event()
        with database.cursor() as cursor:
            assert len(first_tries(cursor, webhook_events(database))) == 1
        with webhooks.running_with_relay(*FIRST_TRY):
            eventually(lambda: merchant.status(delivery_id) == "succeeded")
        assert ids_in(receiver) == [delivery_id]

    def test_kill_between_a_recorded_failure_and_its_delay_record_loses_nothing(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver, database: Database
    ) -> None:
        """The record is read again. It sends nothing and publishes the delay record."""
        delivery_id = merchant.create_event()
        with database.cursor() as cursor:
            (due,) = first_tries(cursor, webhook_events(database))
            record_tries(cursor, [_failed(delivery_id, 1, LONG)])
        webhooks.publish([to_deliver(due)])
        with webhooks.with_delays(LONG).running("deliver"):
            delay = TopicReader(webhooks.settings.kafka, WEBHOOKS_DELAY[0].name)
            (delayed,) = delay.read(1)
            delay.close()
        delivery = merchant.delivery(delivery_id)
        assert delivery is not None
        assert delivery.next_due_at is not None
        assert delayed == DeliveryDue(delivery_id, merchant.id, 2, delivery.next_due_at)
        assert receiver.requests == []

    def test_kill_before_publishing_an_exhausted_delivery_loses_nothing(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver, database: Database
    ) -> None:
        delivery_id = merchant.create_event()
        with database.cursor() as cursor:
            (due,) = first_tries(cursor, webhook_events(database))
            for step in range(1, 10):
                record_tries(cursor, [_failed(delivery_id, step, (0,) * 8)])
        webhooks.publish([to_deliver(DeliveryDue(delivery_id, merchant.id, 9, due.due_at))])
        with webhooks.running("deliver"):
            dead = TopicReader(webhooks.settings.kafka, WEBHOOKS_DEAD.name)
            (exhausted,) = dead.read(1)
            dead.close()
        assert isinstance(exhausted, DeliveryExhausted)
        assert exhausted.id == delivery_id
        assert receiver.requests == []


def _failed(delivery_id: UUID, step: int, delays: Sequence[float]) -> ScheduledTry:
    decision = decide_after_try(step, is_success=False, retry_delays=delays)
    return ScheduledTry(str(delivery_id), step, TryResult(0.0, 1, 500, None, b""), 1, decision)


class TestDuplicates:
    def test_same_record_many_times_is_sent_once(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver, database: Database
    ) -> None:
        """In one batch, while the first is in flight, and after it has ended."""
        receiver.answer = Reply(200, delay_s=0.3)
        delivery_ids = [merchant.create_event() for _ in range(20)]
        with database.cursor() as cursor:
            due = first_tries(cursor, webhook_events(database))
        with webhooks.running("deliver"):
            for _ in range(3):
                webhooks.publish([to_deliver(one) for one in due] * 2)
            eventually(lambda: merchant.statuses() == {"succeeded": 20})
            webhooks.publish([to_deliver(one) for one in due])
            marker = merchant.create_event()
            with database.cursor() as cursor:
                (last,) = first_tries(cursor, [e for e in webhook_events(database) if e.id == marker])
            webhooks.publish([to_deliver(last)])
            eventually(lambda: merchant.status(marker) == "succeeded")
        assert sorted(ids_in(receiver)) == sorted([*delivery_ids, marker])

    def test_an_early_record_is_not_sent_early(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver, database: Database
    ) -> None:
        """The database decides when it is due, whatever a record or this machine's clock says."""
        delivery_id = merchant.create_event()
        with database.cursor() as cursor:
            (due,) = first_tries(cursor, webhook_events(database))
            record_tries(cursor, [_failed(delivery_id, 1, (1.5,) * 8)])
        delivery = merchant.delivery(delivery_id)
        assert delivery is not None
        assert delivery.next_due_at is not None
        webhooks.publish([to_deliver(DeliveryDue(delivery_id, merchant.id, 2, due.due_at))])
        with webhooks.running("deliver", "delay"):
            eventually(lambda: merchant.status(delivery_id) == "succeeded")
        (request,) = receiver.requests
        assert request.at >= delivery.next_due_at.timestamp()


class TestStoppedGracefully:
    def test_requests_in_flight_finish_and_are_not_sent_again(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver
    ) -> None:
        receiver.answer = Reply(200, delay_s=0.4)
        delivery_ids = [merchant.create_event() for _ in range(50)]
        with webhooks.running_relay():
            with webhooks.running(*FIRST_TRY):
                eventually(lambda: len(receiver.requests) == 50)
            assert merchant.statuses() == {"succeeded": 50}
            with webhooks.running(*FIRST_TRY):
                marker = merchant.create_event()
                eventually(lambda: merchant.status(marker) == "succeeded")
        assert sorted(ids_in(receiver)) == sorted([*delivery_ids, marker])

    def test_a_hanging_request_is_repeated_by_the_next_process(
        self,
        webhooks: Webhooks,
        merchant: Merchant,
        receiver: Receiver,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The stopping process does not wait for it. The next one sends it again, as the same try."""
        monkeypatch.setattr(handler, "_DRAIN_S", 0.5)
        receiver.answer = lambda _: Reply(hangs=len(receiver.requests) == 1)
        delivery_id = merchant.create_event()
        with webhooks.running_relay():
            with webhooks.running(*FIRST_TRY):
                eventually(lambda: receiver.requests)
            assert merchant.tries(delivery_id) == []
            with webhooks.running(*FIRST_TRY):
                eventually(lambda: merchant.status(delivery_id) == "succeeded")
        assert ids_in(receiver) == [delivery_id] * 2
        assert [one.number for one in merchant.tries(delivery_id)] == [1]

    def test_records_in_a_delay_topic_wait_for_the_next_process(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver
    ) -> None:
        """They are due while no process runs, and the next one moves them."""
        receiver.answer = lambda _: Reply(500 if len(receiver.requests) == 1 else 200)
        delivery_id = merchant.create_event()
        with webhooks.running_relay():
            with webhooks.running(*ONE_RETRY):
                eventually(lambda: merchant.tries(delivery_id))
            with webhooks.running(*ONE_RETRY):
                eventually(lambda: merchant.status(delivery_id) == "succeeded")
        first, second = receiver.requests
        assert second.at - first.at >= DELAYS[0]


def test_deliveries_survive_rebalances(webhooks: Webhooks, merchant: Merchant, receiver: Receiver) -> None:
    """Partitions move between processes while tries fail and wait: all are delivered, none early."""
    refused: Counter[bytes] = Counter()

    def answer(_: object) -> Reply:
        body = receiver.requests[-1].body
        refused[body] += 1
        return Reply(500 if refused[body] <= 2 else 200, delay_s=0.01)

    receiver.answer = answer
    with webhooks.running_with_relay(*TWO_RETRIES):
        delivery_ids = [merchant.create_event() for _ in range(60)]
        for _ in range(3):
            with webhooks.running(*TWO_RETRIES):
                delivery_ids += [merchant.create_event() for _ in range(20)]
                eventually(partial(merchant.tries, delivery_ids[-1]))
        eventually(lambda: merchant.statuses() == {"succeeded": 120})
    for one in delivery_ids:
        assert [made.step for made in merchant.tries(one)] == [1, 2, 3]
    sent = {
        one: [r.at for r, i in zip(receiver.requests, ids_in(receiver), strict=True) if i == one]
        for one in delivery_ids
    }
    for times in sent.values():
        assert len(times) == 3
        for earlier, later in pairwise(times):
            assert later - earlier >= DELAYS[0]


@pytest.mark.kills
class TestEnginesBreak:
    def test_postgresql_is_killed_and_restarted(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver, killable_engines: Engines
    ) -> None:
        """Responses that arrive meanwhile are recorded afterwards, and not requested again."""
        receiver.answer = Reply(200, delay_s=0.5)
        delivery_ids = [merchant.create_event() for _ in range(30)]
        with webhooks.running_with_relay():
            eventually(lambda: len(receiver.requests) == 30)
            killable_engines.postgres.kill()
            killable_engines.postgres.start()
            eventually(lambda: merchant.statuses() == {"succeeded": 30})
        assert sorted(ids_in(receiver)) == sorted(delivery_ids)

    def test_kafka_is_killed_and_restarted(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver, killable_engines: Engines
    ) -> None:
        """While some failures wait to be published to a delay topic, and others wait in one."""
        receiver.answer = lambda _: Reply(500 if len(receiver.requests) <= 40 else 200)
        with webhooks.running_with_relay():
            delivery_ids = [merchant.create_event() for _ in range(20)]
            eventually(lambda: len(receiver.requests) >= 10)
            killable_engines.kafka.kill()
            delivery_ids += [merchant.create_event() for _ in range(20)]
            killable_engines.kafka.start()
            eventually(lambda: merchant.statuses() == {"succeeded": 40}, 90)
        assert set(ids_in(receiver)) == set(delivery_ids)


class TestStatementTimeouts:
    def test_an_event_that_cannot_be_taken_in_holds_up_no_other(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver, database_settings: DatabaseSettings
    ) -> None:
        """Its row is locked for longer than a statement may take: it becomes a dead letter, the others are sent."""
        locked, *others = [merchant.create_event() for _ in range(30)]
        with psycopg.connect(database_settings.url) as somebody:
            somebody.execute("select from intent_events where id = %s for update", (locked,))
            with impatient(webhooks).running_with_relay(*FIRST_TRY):
                eventually(lambda: merchant.statuses() == {"succeeded": len(others)}, 60)
                reader = TopicReader(webhooks.settings.kafka, DEAD_LETTERS.name)
                (letter,) = reader.read(1)
                reader.close()
        assert isinstance(letter, DeadLetter)
        assert "statement timeout" in letter.reason
        assert sorted(ids_in(receiver)) == sorted(others)

    def test_a_try_that_cannot_be_recorded_holds_up_no_other(
        self,
        webhooks: Webhooks,
        merchant: Merchant,
        receiver: Receiver,
        database_settings: DatabaseSettings,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Its delivery is locked while the request is in flight. It is recorded once the lock is gone."""
        monkeypatch.setattr(consumer_loop, "FAILURES_BEFORE_DEAD", 100)
        receiver.answer = Reply(200, delay_s=1)
        delivery_ids = [merchant.create_event() for _ in range(30)]
        with impatient(webhooks).running_with_relay(*FIRST_TRY):
            eventually(lambda: len(receiver.requests) == 30)
            with psycopg.connect(database_settings.url) as somebody:
                somebody.execute("select from webhook_deliveries where id = %s for update", delivery_ids[:1])
                eventually(lambda: merchant.statuses() == {"succeeded": 29, "pending": 1}, 60)
            eventually(lambda: merchant.statuses() == {"succeeded": 30}, 60)
        assert set(ids_in(receiver)) == set(delivery_ids)


def impatient(webhooks: Webhooks) -> Webhooks:
    """The same service, whose statements may take one second."""
    settings = webhooks.settings
    return Webhooks(replace(settings, database=replace(settings.database, statement_timeout_s=1)))


class TestPoisonMessages:
    def test_poison_messages_become_dead_letters_and_others_are_processed(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver
    ) -> None:
        exhausted = DeliveryExhausted(UUID(int=1), merchant.id, datetime.now(UTC))
        wrong_message = OutgoingRecord(WEBHOOKS_DELIVER.name, "x", encode(exhausted))
        webhooks.publish([OutgoingRecord(WEBHOOKS_DELIVER.name, "x", b"garbage"), wrong_message])
        webhooks.publish([OutgoingRecord(PAYMENT_INTENT_EVENTS.name, "x", b"\xff")])
        delivery_id = merchant.create_event()
        with webhooks.running_with_relay(*FIRST_TRY, "deliver"):
            eventually(lambda: merchant.status(delivery_id) == "succeeded")
            reader = TopicReader(webhooks.settings.kafka, DEAD_LETTERS.name)
            letters = [letter for letter in reader.read(3) if isinstance(letter, DeadLetter)]
            reader.close()
        assert {letter.value for letter in letters} == {b"garbage", wrong_message.value, b"\xff"}

    def test_requests_in_flight_finish_while_dead_letters_cannot_be_published(
        self,
        webhooks: Webhooks,
        merchant: Merchant,
        receiver: Receiver,
        database: Database,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The dead letter topic is missing. Only the partition with a poison message waits."""
        monkeypatch.setattr(producer, "_TIMEOUT_S", 0.5)
        delete_topic(webhooks.settings.kafka, DEAD_LETTERS)
        receiver.answer = Reply(200, delay_s=0.5)
        delivery_ids = [merchant.create_event() for _ in range(10)]
        with database.cursor() as cursor:
            due = first_tries(cursor, webhook_events(database))
        with webhooks.running("deliver"):
            webhooks.publish([to_deliver(one) for one in due])
            eventually(lambda: len(receiver.requests) == 10)
            webhooks.publish(
                [OutgoingRecord(WEBHOOKS_DELIVER.name, str(uuid4()), b"garbage") for _ in range(6)]
            )
            eventually(lambda: merchant.statuses() == {"succeeded": 10})
        assert sorted(ids_in(receiver)) == sorted(delivery_ids)

    def test_secret_that_cannot_be_decrypted_stops_only_its_own_deliveries(
        self, webhooks: Webhooks, make_merchant: MakeMerchant, receiver: Receiver
    ) -> None:
        """A key was removed too early: the delivery stays pending, and a dead letter names the setting."""
        bad, good = make_merchant(receiver.url), make_merchant(receiver.url)
        bad.execute(
            "update webhook_secrets set encrypted_secret = 'rubbish' where application_id = %s", bad.id
        )
        lost, found = bad.create_event(), [good.create_event() for _ in range(10)]
        with webhooks.running_with_relay(*FIRST_TRY, "deliver"):
            eventually(lambda: good.statuses() == {"succeeded": 10})
            reader = TopicReader(webhooks.settings.kafka, DEAD_LETTERS.name)
            (letter,) = reader.read(1)
            reader.close()
        assert isinstance(letter, DeadLetter)
        assert "MIZAN_SECRET_KEYS" in letter.reason
        # Not from the topic of events, whose partitions all applications share.
        assert letter.topic == topic_name(webhooks.settings.kafka, WEBHOOKS_DELIVER.name)
        assert bad.status(lost) == "pending"
        assert sorted(ids_in(receiver)) == sorted(found)


@pytest.mark.stack
def test_sigterm_ends_the_process_in_time(start_process: StartProcess) -> None:
    process = start_process()
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


@pytest.mark.kills
@pytest.mark.stack
def test_sigterm_ends_the_process_while_postgresql_is_frozen(
    webhooks: Webhooks, merchant: Merchant, database: Database, start_process: StartProcess
) -> None:
    """Regression: a thread waited forever for a response."""
    process = start_process()
    with webhooks.running_relay():
        delivery_id = merchant.create_event()
        eventually(lambda: merchant.status(delivery_id) == "succeeded")
    with database.cursor() as cursor:
        sessions = "select pid from pg_stat_activity where application_name = 'mizan-webhooks'"
        servers = [int(pid) for (pid,) in cursor.execute(sessions).fetchall()]
    for server in servers:
        os.kill(server, signal.SIGSTOP)
    try:
        webhooks.publish([to_deliver(DeliveryDue(delivery_id, merchant.id, 1, datetime.now(UTC)))])
        process.send_signal(signal.SIGTERM)
        process.wait(40)
    finally:
        for server in servers:
            os.kill(server, signal.SIGCONT)
