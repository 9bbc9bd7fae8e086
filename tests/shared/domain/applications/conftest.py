"""Applications in the test's database."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from cryptography.fernet import Fernet

from shared.domain.applications.registry import CreatedApplication, NewApplication, create_application
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox

Create = Callable[..., CreatedApplication]
Rows = Callable[..., list[Any]]


@pytest.fixture
def box() -> SecretBox:
    return SecretBox((Fernet.generate_key().decode(),))


@pytest.fixture
def create(database: Database, box: SecretBox) -> Create:
    def call(name: str = "shop", merchant: UUID | str | None = None, **more: Any) -> CreatedApplication:
        with database.transaction() as connection:
            return create_application(connection, box, NewApplication(name, merchant, **more))

    return call


@pytest.fixture
def rows(database: Database) -> Rows:
    def call(query: str, *values: object) -> list[Any]:
        with database.transaction() as connection:
            return connection.execute(query.encode(), values).fetchall()

    return call
