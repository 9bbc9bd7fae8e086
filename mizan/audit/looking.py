"""The whole audit: one snapshot of the database, then the sandbox's ledger where there is one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from mizan.audit.again import Say, still_there, until_sure
from mizan.audit.charges import look_at_charges
from mizan.audit.checks import Found, Rows
from mizan.audit.deliveries import look_at_deliveries, look_at_tries
from mizan.audit.kept import what_is_kept
from mizan.audit.ledger import Ledger, LedgerAwayError
from mizan.audit.payments import look_at_payments
from mizan.audit.stories import look_at_stories
from mizan.audit.stuck import count_waiting, look_for_stuck
from shared.platform.database.pool import Database

_SNAPSHOT = "set transaction isolation level repeatable read, read only"
# Before the snapshot is taken, by the first select: no month is dropped between that and our look at it.
_HOLD = "lock table intent_events, webhook_deliveries, webhook_tries in access share mode"
_COUNT = f"""
select '{Rows.INTENTS}', count(*) from payment_intents
union all select '{Rows.ATTEMPTS}', count(*) from payment_attempts
union all select '{Rows.EVENTS}', count(*) from intent_events
union all select '{Rows.OUTBOX}', count(*) from outbox
union all select '{Rows.DELIVERIES}', count(*) from webhook_deliveries where not is_test
union all select '{Rows.TRIES}', count(*) from webhook_tries"""


@dataclass(frozen=True, slots=True)
class Audited:
    found: Found
    checked: dict[str, int]
    """How many rows there are of each kind."""
    waiting: dict[str, int]
    not_checked: str | None = None
    """Why there was no look at the ledger, where there is one."""

    @property
    def ok(self) -> bool:
        return not self.found.findings and self.not_checked is None


def audit(database: Database, sandbox_url: str | None, say: Say) -> Audited:
    seen, checked, waiting = _look_at_database(database, say)
    if sandbox_url is None:
        return Audited(seen, checked, waiting)
    say("the sandbox's ledger")
    ledger = Ledger(sandbox_url)
    try:
        in_ledger, charges = look_at_charges(database, ledger, say)
    except LedgerAwayError as away:
        return Audited(seen, checked, waiting, str(away))
    finally:
        ledger.close()
    return Audited(seen.and_also(in_ledger), {**checked, Rows.CHARGES: charges}, waiting)


def _look_at_database(database: Database, say: Say) -> tuple[Found, dict[str, int], dict[str, int]]:
    with _snapshot(database) as connection:
        # First, for the clock goes on while the snapshot stands still.
        stuck = look_for_stuck(connection)
        waiting = count_waiting(connection)
        kept = what_is_kept(connection)
        say("how many rows there are")
        checked = dict(connection.execute(_COUNT).fetchall())
        say("intents and their attempts")
        seen = look_at_payments(connection)
        say("intents and their events")
        seen = seen.and_also(look_at_stories(connection, kept))
        say("events and their deliveries")
        seen = seen.and_also(look_at_deliveries(connection, kept))
        say("deliveries and their tries")
        seen = seen.and_also(look_at_tries(connection, kept))

    def look_again(before: Found) -> Found:
        with database.transaction() as connection:
            return still_there(before, look_for_stuck(connection))

    return seen.and_also(until_sure(stuck, look_again, say)), checked, waiting


@contextmanager
def _snapshot(database: Database) -> Iterator[Connection[Any]]:
    """The database as it is at one moment, for all that is asked in it."""
    with database.transaction() as connection:
        connection.execute(_SNAPSHOT)
        connection.execute(_HOLD)
        yield connection
