"""Fixtures: the dashboard on a database of its own for each test."""

from collections.abc import Iterator

import pytest

from shared.domain.accounts.roles import Role
from shared.platform.database.pool import Database
from shared.platform.settings import Settings
from tests.dashboard.delivery_rows import Deliveries
from tests.dashboard.mailbox import Mailbox, open_mailbox
from tests.dashboard.merchant_rows import Merchants
from tests.dashboard.world import ROLE, DashboardWorld
from tests.database_roles import open_as
from tests.page_client import PageClient


@pytest.fixture
def world(settings: Settings, database: Database) -> Iterator[DashboardWorld]:
    with open_as(ROLE, settings.database, "dashboard") as service_database:
        yield DashboardWorld(settings, database, service_database)


@pytest.fixture
def pages(world: DashboardWorld) -> Iterator[DashboardWorld]:
    """A `world` whose pages are served over HTTP."""
    with world.serve():
        yield world


@pytest.fixture
def mailbox(world: DashboardWorld) -> Iterator[Mailbox]:
    with open_mailbox(world) as box:
        yield box


@pytest.fixture
def deliveries(pages: DashboardWorld) -> Deliveries:
    return Deliveries(pages.database, pages.application.id)


@pytest.fixture
def viewer(pages: DashboardWorld) -> Iterator[PageClient]:
    person = pages.person(Role.VIEWER)
    yield person
    person.close()


@pytest.fixture
def developer(pages: DashboardWorld) -> Iterator[PageClient]:
    person = pages.person(Role.DEVELOPER)
    yield person
    person.close()


@pytest.fixture
def merchants(world: DashboardWorld) -> Merchants:
    """Two merchants with rows in each table, and a pool of connections with the role of the dashboard."""
    return Merchants(world)
