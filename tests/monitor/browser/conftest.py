"""Fixtures for browser tests of the monitor."""

from collections.abc import Iterator

import pytest

from services.monitor.app import make_app
from shared.platform.web.operations_server import serve_operations
from tests.browser import Visitors
from tests.monitor.browser.failing_system import FailingSystem
from tests.monitor.browser.operator_browser import OperatorBrowsers
from tests.monitor.world import MonitorWorld
from tests.shared.domain.dead_letters.dead_letter_topic import DeadLetterTopic


@pytest.fixture
def pages(world: MonitorWorld) -> Iterator[MonitorWorld]:
    """Serve the pages, not with Werkzeug: it leaks a file if a browser leaves during a download."""
    app = make_app(world.settings, world.service_database, world.inspector)
    server = serve_operations(app, "127.0.0.1", world.port)
    yield world
    server.close()


@pytest.fixture
def system(pages: MonitorWorld, dead_letter_topic: DeadLetterTopic) -> FailingSystem:
    return FailingSystem(pages, dead_letter_topic)


@pytest.fixture
def operators(pages: MonitorWorld, visitors: Visitors) -> OperatorBrowsers:
    return OperatorBrowsers(pages.url, visitors)
