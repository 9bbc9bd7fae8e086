"""Moves a database to one revision of the schema, for the tests of single migrations."""

import psycopg
import sqlalchemy
from alembic import command
from alembic.script import ScriptDirectory

from shared.platform.migrations import runner
from shared.platform.settings import DatabaseSettings


def migrate_to(database: DatabaseSettings, revision: str) -> None:
    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(database.url))
    with engine.connect() as connection:
        config = runner._config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        connection.commit()
    engine.dispose()


def revision_before(revision: str) -> str:
    return str(ScriptDirectory.from_config(runner._config()).get_revision(revision).down_revision)
