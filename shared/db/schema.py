"""Brings the schema up to date, once, also when several processes try at the same moment."""

from functools import cache
from pathlib import Path
from time import sleep
from typing import Any

import psycopg
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
_LOOK_AGAIN_S = 0.2


class SchemaOutdatedError(Exception):
    """The database is older than this code; run `mizan migrate`."""


def migrate(url: str) -> str:
    """Runs the migrations that are missing and returns the revision reached."""
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=lambda: _connect(url), poolclass=sqlalchemy.pool.NullPool
    )
    try:
        with engine.connect() as connection:
            _lock(connection)
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
            return MigrationContext.configure(connection).get_current_revision() or ""
    except (psycopg.OperationalError, sqlalchemy.exc.OperationalError) as error:
        raise DatabaseUnavailableError(str(getattr(error, "orig", error))) from error


def _connect(url: str) -> Connection[Any]:
    # A change that cannot get its lock fails soon, instead of making everybody queue behind it.
    return psycopg.connect(url, connect_timeout=10, options="-c timezone=UTC -c lock_timeout=10s")


def _lock(connection: sqlalchemy.Connection) -> None:
    """Not by waiting inside PostgreSQL: that would hold a snapshot, for which some migrations have to wait."""
    held = False
    while not held:
        held = bool(
            connection.exec_driver_sql("select pg_try_advisory_lock(%s)", (_MIGRATION_LOCK,)).scalar()
        )
        connection.commit()
        if not held:
            sleep(_LOOK_AGAIN_S)


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
