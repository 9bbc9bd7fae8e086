"""Fixtures for tests of the monitor: its pages, on a database and topics of their own for each test."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from shared.domain.dead_letters import topic_reader
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import INDEX_ORDER
from shared.platform.settings import KafkaSettings, Settings
from tests.database_roles import open_as
from tests.monitor.world import MonitorWorld
from tests.page_client import PageClient
from tests.shared.domain.dead_letters.dead_letter_topic import DeadLetterTopic


@pytest.fixture
def world(settings: Settings, database: Database) -> Iterator[MonitorWorld]:
    with open_as("mizan_monitor", settings.database, "monitor") as service_database:
        made = MonitorWorld(settings, database, service_database)
        yield made
        made.inspector.stop()


@pytest.fixture
def pages(world: MonitorWorld) -> Iterator[MonitorWorld]:
    """A `world` whose pages are served over HTTP."""
    with world.serve():
        yield world


@pytest.fixture
def operator(pages: MonitorWorld) -> Iterator[PageClient]:
    person = pages.person()
    yield person
    person.close()


@pytest.fixture
def dead_letter_topic(world: MonitorWorld, all_topics: KafkaSettings) -> DeadLetterTopic:
    """The dead letter topic. All topics exist, so that records can be replayed to their origin."""
    return DeadLetterTopic(world.database, world.settings.kafka)


@pytest.fixture
def without_kafka(
    settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MonitorWorld]:
    """Pages without Kafka, and with short timeouts."""
    monkeypatch.setattr(topic_reader, "_TIMEOUT_S", 0.2)
    away = replace(settings, kafka=replace(settings.kafka, bootstrap_servers="127.0.0.1:9"))
    with open_as("mizan_monitor", away.database, "monitor") as service_database:
        made = MonitorWorld(away, database, service_database)
        with made.serve():
            yield made
        made.inspector.stop()


@pytest.fixture
def unattended(settings: Settings) -> Iterator[MonitorWorld]:
    """A world with a long statement timeout, so that large tables can be filled."""
    patient = replace(settings, database=replace(settings.database, statement_timeout_s=250))
    database = Database(patient.database, "monitor", **INDEX_ORDER)
    world = MonitorWorld(patient, database, database)
    for name in ("Benghazi Books", "Misrata Music"):
        world.make_application(name)
    yield world
    database.close()
