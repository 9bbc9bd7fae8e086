"""Fixtures for browser tests of the dashboard."""

from collections.abc import Iterator

import pytest

from services.dashboard.app import make_app
from shared.platform.web.operations_server import serve_operations
from tests.browser import Visitors
from tests.dashboard.browser.colleague import Colleague, Colleagues
from tests.dashboard.world import DashboardWorld


@pytest.fixture
def pages(world: DashboardWorld) -> Iterator[DashboardWorld]:
    """Serve the pages, not with Werkzeug: it leaks a file if a browser leaves during a download."""
    server = serve_operations(make_app(world.settings, world.service_database), "127.0.0.1", world.port)
    yield world
    server.close()


@pytest.fixture
def colleagues(pages: DashboardWorld, visitors: Visitors) -> Colleagues:
    return Colleagues(pages.url, visitors)


@pytest.fixture
def owner(pages: DashboardWorld, colleagues: Colleagues) -> Colleague:
    """The browser of an owner who is signed in."""
    return colleagues.come_in(pages)
