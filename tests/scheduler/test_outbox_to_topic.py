"""The scheduler as a process publishes outbox rows to payment_intents.events."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stack.engines import Engines
from tests.scheduler.conftest import Outbox
from tests.servers import ServiceProcess
from tests.topics import TopicReader
from tests.waiting import eventually


@pytest.mark.stack
def test_created_intent_is_published_to_the_events_topic(
    scheduler: ServiceProcess, outbox: Outbox, reader: TopicReader
) -> None:
    """Intent row and outbox row are written in one transaction; the message names the intent."""
    with scheduler.running() as process:
        eventually(lambda: scheduler.status() == 200)
        intent = outbox.create()
        (event,) = reader.events(1)
        assert (event.intent_uuid, event.seq) == (intent, 1)
        assert scheduler.status("healthz") == scheduler.status("metrics") == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


@pytest.mark.kills
@pytest.mark.stack
def test_events_of_a_broker_outage_are_published_once_each_after_its_return(
    killable_engines: Engines, scheduler: ServiceProcess, outbox: Outbox, reader: TopicReader
) -> None:
    """Creating and paying continue; /readyz fails during the outage."""
    with scheduler.running():
        eventually(lambda: scheduler.status() == 200)
        killable_engines.kafka.kill()
        intents = [outbox.create() for _ in range(20)]
        for intent in intents:
            outbox.pay(intent)
        eventually(lambda: scheduler.status() == 503)
        assert scheduler.status("healthz") == 200
        assert outbox.waiting() == 40
        killable_engines.kafka.start()
        events = reader.events(40, within=60)
        eventually(lambda: scheduler.status() == 200, within=60)
    assert sorted((event.intent_uuid, event.seq) for event in events) == sorted(
        (intent, seq) for intent in intents for seq in (1, 2)
    )


@pytest.mark.kills
@pytest.mark.stack
def test_scheduler_killed_while_publishing_loses_nothing(
    scheduler: ServiceProcess, outbox: Outbox, reader: TopicReader
) -> None:
    """After kill -9 the next process continues; a repeat has the same id, in order behind the first."""
    intents = [outbox.create() for _ in range(300)]
    with scheduler.running() as process:
        reader.events(1)
        process.kill()
    for intent in intents:
        outbox.pay(intent)
    with scheduler.running():
        eventually(lambda: outbox.waiting() == 0)
    events = {event.id: event for event in reversed(reader.events(600))}
    assert len(events) == 600
    first_seen = list(reversed(events.values()))
    for intent in intents:
        assert [event.seq for event in first_seen if event.intent_uuid == intent] == [1, 2]


def test_process_without_settings_lists_what_is_missing(repository_root: Path) -> None:
    """It exits with code 78 and lists every problem, without a traceback."""
    answer = subprocess.run(
        [sys.executable, "-m", "services.scheduler"],
        cwd=repository_root,
        env={"PATH": "/usr/bin:/bin", "HTTP_PORT": "x"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 78
    for name in ("DATABASE_URL", "KAFKA_BOOTSTRAP_SERVERS", "HTTP_PORT"):
        assert name in answer.stderr
    assert "Traceback" not in answer.stderr
