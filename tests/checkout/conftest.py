"""Fixtures of the checkout: one sandbox for the whole run, and pages on a new database for each test."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from services.api.app import make_app
from services.checkout.dependencies import open_database
from shared.platform.database.pool import Database
from shared.platform.settings import Settings
from stack.ports import find_free_ports
from tests.checkout.world import SILENCE_S, CheckoutWorld
from tests.database_roles import as_role, open_as
from tests.sandbox.running_sandbox import RunningSandbox
from tests.servers import serve


@pytest.fixture(scope="session")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSandbox]:
    """The sandbox that all tests share. No test may kill it."""
    made = RunningSandbox(tmp_path_factory.mktemp("bank"), SANDBOX_SILENCE=str(SILENCE_S))
    with made.running():
        yield made


@pytest.fixture
def world(settings: Settings, database: Database, bank: RunningSandbox) -> Iterator[CheckoutWorld]:
    with closing(open_database(as_role("mizan_checkout", settings.database))) as service_database:
        made = CheckoutWorld(settings, database, service_database, bank)
        yield made
        made.close()


@pytest.fixture
def pages(world: CheckoutWorld) -> Iterator[CheckoutWorld]:
    """A `world` whose pages are served over HTTP."""
    with world.serve():
        yield world


@pytest.fixture
def api_url(world: CheckoutWorld) -> Iterator[str]:
    """The API on the database of the checkout."""
    port = find_free_ports(1)[0]
    with (
        open_as("mizan_api", world.settings.database, "api") as database,
        serve(make_app(world.settings, database), port),
    ):
        yield f"http://127.0.0.1:{port}"
