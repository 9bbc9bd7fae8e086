"""Runs `mizan` in the process of the test, on the test's database."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner, Result
from cryptography.fernet import Fernet

from mizan.__main__ import main
from shared.platform.settings import DatabaseSettings
from tests.checkout.conftest import api_url, bank, world
from tests.checkout.world import CheckoutWorld
from tests.database_roles import url_as

__all__ = ["api_url", "bank", "world"]

KEY = Fernet.generate_key().decode()
Mizan = Callable[..., Result]


@pytest.fixture
def environment(database_settings: DatabaseSettings, tmp_path: Path) -> dict[str, str]:
    return {
        "DATABASE_URL": url_as("mizan_cli", database_settings.url),
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",  # these commands do not need it
        "MIZAN_SECRET_KEYS": KEY,
        "STACK_DIR": str(tmp_path),
        "WEBHOOK_ALLOW_PRIVATE": "false",
    }


@pytest.fixture
def run(environment: dict[str, str]) -> Mizan:
    """Run `mizan …`; an exception without a clear message fails the test."""

    def call(*words: str, **more: str) -> Result:
        return CliRunner().invoke(main, list(words), env={**environment, **more}, catch_exceptions=False)

    return call


@pytest.fixture
def mizan(run: Mizan) -> Mizan:
    """Run `mizan app …`."""
    return lambda *words, **more: run("app", *words, **more)


@pytest.fixture
def pages(world: CheckoutWorld) -> Iterator[CheckoutWorld]:
    """A `world` whose pages are served over HTTP, in this process: their log must not mix with a command's output."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    with world.serve():
        yield world
    structlog.reset_defaults()
