"""The demo data that `mizan demo` creates: its names, and the check that keeps production from running with it."""

import logging
from typing import Any, Final

import psycopg
from psycopg import Cursor

from shared.platform.database.connections import (
    DatabaseUnavailableError,
    connection_arguments,
    translate_outage,
)
from shared.platform.database.pool import Database, fetch_scalar
from shared.platform.settings import DatabaseSettings

_log = logging.getLogger("shared.platform.production")

MERCHANT: Final = "Demo"
APPLICATION: Final = "Demo shop"
OWNER: Final = "owner@demo.example"
OPERATOR: Final = "operator@demo.example"

DEMO_NAMES = {"merchant": MERCHANT, "owner": OWNER, "operator": OPERATOR}
# By the merchant's name too, which only operators set: any merchant can invite somebody with that address.
DEMO_MERCHANT = """
with demo as (select m.id from merchants as m where m.name = %(merchant)s
              and exists (select from members where merchant_id = m.id and email = %(owner)s))"""
# A function with the owner's rights: most services may not read the tables of people and credentials.
_FIND = "select find_demo_data()"
_WHAT = ("an operator", "members", "API keys and tokens")


class DemoDataError(Exception):
    """The database holds demo data; the text says what to do."""


class DemoDataCheck:
    """For /readyz, because the database may have been down when the process started. Checks until it is clean once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_clean = False

    def check(self) -> None:
        if self._is_clean:
            return
        with self._database.cursor() as cursor:
            found = find_demo_data(cursor)
        if found:
            raise DemoDataError(found)
        self._is_clean = True


def find_demo_data_at_start(settings: DatabaseSettings) -> str | None:
    """Return what `find_demo_data` finds. A database that is down or has no tables yet does not stop the start."""
    try:
        arguments = connection_arguments(settings, "production-check")
        with translate_outage(), psycopg.connect(settings.url, **arguments) as connection:
            return find_demo_data(connection.cursor())
    except DatabaseUnavailableError:
        _log.warning("PostgreSQL does not answer; /readyz will check it for demo data")
    except psycopg.ProgrammingError:
        # An older schema, or none; or an address that cannot be parsed, which is reported elsewhere.
        _log.info("the database has no demo data: it has no tables for it")
    return None


def find_demo_data(cursor: Cursor[Any]) -> str | None:
    """Return what was found and what to do about it; None if there is no demo data."""
    is_found = fetch_scalar(cursor, _FIND)
    found = [what for what, is_there in zip(_WHAT, is_found, strict=True) if is_there]
    if not found:
        return None
    return (
        f"The database holds the demo's ({', '.join(found)}), whose passwords lie in a file: run `mizan remove-demo`, "
        "or use another database."
    )
