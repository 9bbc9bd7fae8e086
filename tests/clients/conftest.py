"""Fixtures: the real API on a port, and the languages of the clients."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.api.app import make_app
from shared.platform.database.pool import Database
from shared.platform.settings import Settings
from tests.api.conftest import MakeApplication, api_database, make_application
from tests.clients.real_api import RealApi, serve_api
from tests.merchants.languages import install_missing

__all__ = ["api_database", "make_application"]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Install missing languages before the first test, because the time limit of a test is too short for it."""
    is_needed = any(Path(__file__).parent in item.path.parents for item in session.items)
    if is_needed and not session.config.option.collectonly:
        capture = session.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            install_missing()


@pytest.fixture
def real_api(
    settings: Settings, api_database: Database, make_application: MakeApplication
) -> Iterator[RealApi]:
    applications = make_application("Tripoli Coffee"), make_application("Benghazi Books")
    with serve_api(make_app(settings, api_database), *applications) as made:
        yield made
