"""Runs `mizan` in the process of the test, on the test's database."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cryptography.fernet import Fernet

from mizan.__main__ import main
from shared.platform.settings import DatabaseSettings
from tests.database_roles import url_as

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
