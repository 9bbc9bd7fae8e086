"""Runs the migrations, once, even when several processes start at the same moment."""

from time import sleep
from typing import Any

import psycopg
import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from psycopg import Connection

from shared.platform.database.connections import DatabaseUnavailableError
from shared.platform.database.schema import MIGRATIONS

# Any fixed number; whoever holds this lock is the one who migrates.
_MIGRATION_LOCK = 0x6D697A616E_00
_LOOK_AGAIN_S = 0.2


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


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config
