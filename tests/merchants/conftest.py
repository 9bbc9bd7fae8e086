"""Fixtures: the example shops of docs/examples, in each language."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.merchants.example_shop import ExampleShop
from tests.merchants.languages import LANGUAGES, Language, install_missing
from tests.merchants.stand_in_api import StandInApi
from tests.webhooks.conftest import webhook_settings, webhooks

__all__ = ["webhook_settings", "webhooks"]

NEW, OLD = "whsec_new", "whsec_old"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Install missing languages before the first test, because the time limit of a test is too short for it."""
    is_needed = any(Path(__file__).parent in item.path.parents for item in session.items)
    if is_needed and not session.config.option.collectonly:
        capture = session.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            install_missing()


@pytest.fixture(scope="module", params=LANGUAGES, ids=lambda language: language.name)
def language(request: pytest.FixtureRequest) -> Language:
    made: Language = request.param
    made.require()
    return made


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandInApi]:
    with StandInApi() as made:
        yield made


@pytest.fixture(scope="module")
def open_shop(
    language: Language, stand_in: StandInApi, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ExampleShop]:
    made = ExampleShop(language, tmp_path_factory.mktemp("shop"))
    with made.open(api_url=stand_in.url, api_key="pk_shop", access_token="at_shop", secrets=f"{NEW},{OLD}"):
        yield made


@pytest.fixture
def api(stand_in: StandInApi) -> StandInApi:
    stand_in.reset()
    return stand_in


@pytest.fixture
def shop(open_shop: ExampleShop, api: StandInApi) -> ExampleShop:
    """The shop of a language, emptied for each test."""
    open_shop.reset()
    return open_shop
