"""Many intents expire at once, with schedulers as processes: one is killed, one fails and recovers."""

import pytest
import requests

from shared.domain.intents.states import IntentStatus
from shared.platform.database.pool import Database
from tests.scheduler.conftest import MakeScheduler, Outbox
from tests.scheduler.due_intents import Intents
from tests.servers import ServiceProcess
from tests.topics import TopicReader
from tests.waiting import eventually

pytestmark = pytest.mark.stack


@pytest.mark.kills
@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_expiry_continues_when_one_of_two_schedulers_is_killed(
    make_scheduler: MakeScheduler, intents: Intents, outbox: Outbox, reader: TopicReader, count: int
) -> None:
    """After kill -9 the other finishes. Each intent is canceled once, and its one event is published."""
    uuids = intents.make(count, due_in_s=-1)
    first, second = make_scheduler(), make_scheduler()
    with first.running() as doomed:
        eventually(lambda: intents.count(IntentStatus.CANCELED) > 0, every=0.001)
        with second.running():
            doomed.kill()
            eventually(lambda: intents.count(IntentStatus.CANCELED) == count, within=120)
            eventually(lambda: outbox.waiting() == 0, within=120)
    assert sorted(intents.logged_cancellations()) == sorted(uuids)
    events = {event.id: event for event in reader.events(count, within=60)}
    assert sorted(event.intent_uuid for event in events.values()) == sorted(uuids)


def test_failing_expiry_is_reported_and_stops_no_other_job(
    scheduler: ServiceProcess, intents: Intents, outbox: Outbox, database: Database
) -> None:
    """/readyz and the metrics name it, the relay continues, and expiry recovers once the cause is gone."""
    intents.make(due_in_s=-1)
    _rename(database, "intent_event_message", "intent_event_message_gone")
    with scheduler.running() as process:
        eventually(lambda: "expiry" in _failing(scheduler))
        assert 'mizan_scheduled_job_failing{job_name="expiry"} 1.0' in scheduler.page("metrics")
        with database.cursor() as cursor:
            cursor.execute(
                "insert into outbox (topic, key, payload) values ('payment_intents.events', 'k', '{}')"
            )
        eventually(lambda: outbox.waiting() == 0)
        assert process.poll() is None
        _rename(database, "intent_event_message_gone", "intent_event_message")
        eventually(lambda: intents.count(IntentStatus.CANCELED) == 1, within=60)
        eventually(lambda: scheduler.status() == 200)
        assert "mizan_intents_expired_total 1.0" in scheduler.page("metrics")


def _failing(scheduler: ServiceProcess) -> str:
    try:
        return scheduler.page("readyz") if scheduler.status() == 503 else ""
    except requests.ConnectionError:
        return ""


def _rename(database: Database, name: str, to: str) -> None:
    with database.cursor() as cursor:
        cursor.execute(f"alter function {name} rename to {to}".encode())
