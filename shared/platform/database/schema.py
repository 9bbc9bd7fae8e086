"""The revision that a database's schema is at, and the revision that this code needs.

This module does not import Alembic, which costs a process 20 MB and half a second; only migrations/runner.py does.
"""

from functools import cache
from pathlib import Path
from typing import Any

from psycopg import Connection

from shared.platform.database.pool import Database

MIGRATIONS = Path(__file__).parent.parent / "migrations"


class SchemaOutdatedError(Exception):
    """The schema is older than this code needs; run `mizan migrate`."""


class UnsupportedRevisionError(Exception):
    """The schema is so old that this version has no migration for it."""


@cache
def head_revision() -> str:
    """Return the newest revision. Revisions are numbered, and their files are named after them."""
    return max(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))


def check_schema(database: Database) -> None:
    """Raise SchemaOutdatedError if the schema is older than this code needs.

    A newer schema is accepted, because during an upgrade the old services go on running for a while.
    """
    with database.transaction() as connection:
        found = current_revision(connection)
    if found < head_revision():
        at = f"at revision {found}" if found else "empty"
        raise SchemaOutdatedError(f"the schema is {at}, but revision {head_revision()} is needed")


def current_revision(connection: Connection[Any]) -> str:
    """Return the revision that the schema is at; an empty string if nothing was ever migrated."""
    exists = connection.execute("select to_regclass('alembic_version')").fetchone()
    if exists is None or exists[0] is None:
        return ""
    row = connection.execute("select version_num from alembic_version").fetchone()
    return str(row[0]) if row else ""
