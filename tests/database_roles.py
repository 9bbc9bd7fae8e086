"""Connections of tests under the role of a service, so that a test fails if the service lacks a right, or has too many.

`database` and `database_settings` belong to the owner: they set up, and look at the result.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

from shared.platform.database.pool import Database
from shared.platform.settings import DatabaseSettings, Settings
from stack.services import SERVICES

MODULE_ROLES = {service.command[2]: service.database_role or "" for service in SERVICES}
"""The role of each program, by its module."""


def password_of(role: str) -> str:
    """Return the password that a role has in tests."""
    return f"{role}-of-a-test"


def url_as(role: str, url: str, database: str | None = None) -> str:
    """Return this address for another role, and another database if one is named."""
    parts = conninfo_to_dict(url)
    host = f"{parts['host']}:{parts['port']}"
    return f"postgresql://{role}:{quote(password_of(role))}@{host}/{database or parts['dbname']}"


def as_role(role: str, settings: DatabaseSettings) -> DatabaseSettings:
    return replace(settings, url=url_as(role, settings.url))


def with_role(role: str, settings: Settings) -> Settings:
    return replace(settings, database=as_role(role, settings.database))


@contextmanager
def open_as(
    role: str, settings: DatabaseSettings, service: str = "test", **server_settings: str
) -> Iterator[Database]:
    """Open the database as a service does, with its role."""
    database = Database(as_role(role, settings), service, **server_settings)
    try:
        yield database
    finally:
        database.close()
