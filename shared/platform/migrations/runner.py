"""Runs the migrations: each once, even if several processes start at the same moment."""

from time import sleep
from typing import Any

import psycopg
import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from psycopg import Connection

from shared.platform.database.connections import DatabaseUnavailableError
from shared.platform.database.schema import MIGRATIONS, UnsupportedRevisionError, current_revision
from shared.platform.migrations.from_0011 import move_to_baseline

# Any fixed number: the process that holds this advisory lock runs the migrations.
_MIGRATION_LOCK = 0x6D697A616E_00
_LOCK_RETRY_S = 0.2
_LAST_BEFORE_BASELINE = "0011"


def migrate(url: str, *, is_production: bool = False) -> str:
    """Run the migrations that are missing and return the revision that the schema is at then.

    Raises UnsupportedRevisionError if the schema is older than any migration of this version, and
    DatabaseUnavailableError if PostgreSQL cannot be reached or a lock was not free in time.
    """
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=lambda: _connect(url), poolclass=sqlalchemy.pool.NullPool
    )
    try:
        with engine.connect() as connection:
            _lock(connection)
            _leave_old_revisions(connection)
            config = _config()
            config.attributes.update(connection=connection, is_production=is_production)
            command.upgrade(config, "head")
            connection.commit()
            return MigrationContext.configure(connection).get_current_revision() or ""
    except (psycopg.OperationalError, sqlalchemy.exc.OperationalError) as error:
        raise DatabaseUnavailableError(str(getattr(error, "orig", error))) from error


def _connect(url: str) -> Connection[Any]:
    # A change that does not get its lock fails soon: everybody else who needs the table queues behind it.
    return psycopg.connect(url, connect_timeout=10, options="-c timezone=UTC -c lock_timeout=10s")


def _lock(connection: sqlalchemy.Connection) -> None:
    """Take the lock. It is polled: waiting for it inside PostgreSQL would hold a snapshot, and
    `create index concurrently` waits for all snapshots."""
    held = False
    while not held:
        held = bool(
            connection.exec_driver_sql("select pg_try_advisory_lock(%s)", (_MIGRATION_LOCK,)).scalar()
        )
        connection.commit()
        if not held:
            sleep(_LOCK_RETRY_S)


def _leave_old_revisions(connection: sqlalchemy.Connection) -> None:
    """Bring a database from before the baseline to the baseline."""
    database = connection.connection.driver_connection
    assert isinstance(database, Connection)
    revision = current_revision(database)
    database.commit()
    if revision == _LAST_BEFORE_BASELINE:
        move_to_baseline(database)
    elif revision and revision < _LAST_BEFORE_BASELINE:
        raise UnsupportedRevisionError(
            f"The database is at revision {revision}. This version can migrate databases from revision "
            f"{_LAST_BEFORE_BASELINE} on; use a new database."
        )


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config
