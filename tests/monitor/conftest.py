"""The monitor's world: pages on a database and topics of their own for each test."""

from collections.abc import Iterator

import pytest

from shared.db.connections import STEADY_PLANS
from shared.db.pool import Database
from shared.settings import Settings
from tests.monitor.world import MonitorWorld
from tests.person import Person


@pytest.fixture
def world(settings: Settings) -> Iterator[MonitorWorld]:
    database = Database(settings.database, "monitor", **STEADY_PLANS)
    yield MonitorWorld(settings, database)
    database.close()


@pytest.fixture
def pages(world: MonitorWorld) -> Iterator[MonitorWorld]:
    """The same, with its pages served."""
    with world.serving():
        yield world


@pytest.fixture
def operator(pages: MonitorWorld) -> Iterator[Person]:
    person = pages.person()
    yield person
    person.close()
