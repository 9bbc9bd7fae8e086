"""Brings the schema up to date, once, also when several processes try at the same moment."""

from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg import Connection

from shared.db.pool import Database, DatabaseUnavailableError

MIGRATIONS = Path(__file__).parent.parent / "migrations"

# Any fixed number; whoever holds this lock is the one who migrates.
_MIGRATION_LOCK = 0x6D697A616E_00


class SchemaOutdatedError(Exception):
    """The database is older than this code; run `mizan migrate`."""


def migrate(url: str) -> str:
    """Runs the migrations that are missing and returns the revision reached."""
    engine = sqlalchemy.create_engine(_sqlalchemy_url(url), poolclass=sqlalchemy.pool.NullPool)
    try:
        with engine.connect() as connection:
            return _upgrade(connection)
    except sqlalchemy.exc.OperationalError as error:
        raise DatabaseUnavailableError(str(error.orig)) from error


def _upgrade(connection: sqlalchemy.Connection) -> str:
    connection.exec_driver_sql("select pg_advisory_lock(%s)", (_MIGRATION_LOCK,))
    connection.commit()
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    connection.commit()
    return MigrationContext.configure(connection).get_current_revision() or ""


@cache
def head_revision() -> str:
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def check_schema(database: Database) -> None:
    """Raises when the schema is older than this code knows. A newer one is fine: upgrades roll."""
    with database.transaction() as connection:
        found = _current_revision(connection)
    if found < head_revision():
        raise SchemaOutdatedError(f"the schema is at {found or 'nothing'}, {head_revision()} is needed")


def _current_revision(connection: Connection[Any]) -> str:
    exists = connection.execute("select to_regclass('alembic_version')").fetchone()
    if exists is None or exists[0] is None:
        return ""
    row = connection.execute("select version_num from alembic_version").fetchone()
    return str(row[0]) if row else ""


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config


def _sqlalchemy_url(url: str) -> str:
    return "postgresql+psycopg://" + url.split("://", 1)[1]
