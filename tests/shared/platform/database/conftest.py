"""Databases that no other test has used."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
import pytest

from shared.platform.database.roles import OWNER
from shared.platform.migrations.runner import migrate
from shared.platform.settings import DatabaseSettings
from tests.database_roles import url_as
from tests.engines import TestEngines


@pytest.fixture
def empty_database(engines: TestEngines) -> Iterator[DatabaseSettings]:
    """A database without a schema."""
    with _create_database(engines) as settings:
        yield settings


@pytest.fixture
def new_database(engines: TestEngines) -> Iterator[DatabaseSettings]:
    """A database that was migrated and never used."""
    with _create_database(engines) as settings:
        migrate(settings.url)
        yield settings


@contextmanager
def _create_database(engines: TestEngines) -> Iterator[DatabaseSettings]:
    name = f"mizan_{uuid4().hex[:12]}"
    with psycopg.connect(engines.database_url, autocommit=True) as connection:
        connection.execute(f'create database "{name}" owner {OWNER}'.encode())
        yield DatabaseSettings(url_as(OWNER, engines.database_url, name), 4, 3, 2.0, 15)
        connection.execute(f'drop database "{name}" with (force)'.encode())
