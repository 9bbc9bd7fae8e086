"""Which revision the schema is at, and which one this code needs.

This module does not import Alembic, which costs every process 20 MB and half a second: see migrations/runner.py.
"""

from functools import cache
from pathlib import Path
from typing import Any

from psycopg import Connection

from shared.platform.database.pool import Database

MIGRATIONS = Path(__file__).parent.parent / "migrations"


class SchemaOutdatedError(Exception):
    """The database is older than this code; run `mizan migrate`."""


@cache
def head_revision() -> str:
    """The newest; revisions are numbered, and their files are named after them."""
    return max(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))


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
