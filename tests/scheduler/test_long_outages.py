"""Slow tests: an outage of Kafka for minutes, and the loss of one broker out of three."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import pytest

from services.scheduler.job_runner import JobFailingError
from shared.domain.kafka_principals import ADMIN
from shared.domain.topics import ALL_TOPICS
from shared.platform.kafka.access_setup import with_login
from shared.platform.kafka.topic_setup import ensure_topics
from shared.platform.settings import DatabaseSettings, KafkaSettings
from stack.engines import Engines, embedded_engines
from tests.scheduler.conftest import Outbox, Relays
from tests.topics import TopicReader
from tests.waiting import eventually

OUTAGE_S = 150


@pytest.mark.kills
@pytest.mark.long
@pytest.mark.timeout(400)
def test_relay_recovers_after_kafka_was_down_for_minutes(
    killable_engines: Engines, outbox: Outbox, relays: Relays, reader: TopicReader
) -> None:
    """Longer than every timeout of ours: the relay waits, says what it waits for, and recovers by itself."""
    intents = [outbox.create() for _ in range(100)]
    with relays.running() as runner:
        eventually(lambda: outbox.waiting() == 0)
        killable_engines.kafka.kill()
        for intent in intents:
            outbox.pay(intent)
        over_at = monotonic() + OUTAGE_S
        eventually(lambda: monotonic() > over_at, within=OUTAGE_S + 5, every=1)
        assert outbox.waiting() == 100
        with pytest.raises(JobFailingError, match="Kafka did not confirm within"):
            runner.check()
        killable_engines.kafka.start()
        eventually(lambda: outbox.waiting() == 0, within=60)
    events = reader.events(200)
    assert len(events) == 200
    for intent in intents:
        assert [event.seq for event in events if event.intent_uuid == intent] == [1, 2]


@pytest.mark.kills
@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_publishing_continues_with_one_of_three_brokers_lost(
    kafka_settings: KafkaSettings, database_settings: DatabaseSettings, outbox: Outbox
) -> None:
    """Each record is on three brokers and two confirm it, so any one of them may be killed."""
    with (
        TemporaryDirectory(prefix="mizan-three-") as directory,
        embedded_engines(Path(directory), brokers=3) as three,
    ):
        settings = replace(
            with_login(kafka_settings, three.kafka_logins.client(ADMIN.name)),
            bootstrap_servers=three.kafka_bootstrap_servers,
            replication_factor=3,
        )
        assert len(ensure_topics(settings, ALL_TOPICS)) == 15
        reader = TopicReader(settings)
        intents = []
        with Relays(database_settings, settings).running():
            for number in (1, 2, 3):
                three.kafka.kill(number)
                intents += [outbox.create() for _ in range(50)]
                eventually(lambda: outbox.waiting() == 0, within=60)
                three.kafka.start(number)
        events = reader.events(150, within=60)
        reader.close()
    assert sorted(event.intent_uuid for event in events) == sorted(intents)
