"""The monthly partitions of a table: which exist, how old each is, and how to change them without blocking others.

Partitions belong to the owner of the database. Functions of the owner (revision 0022) change them for the scheduler,
and only those that can be due: a coming month is made, one beyond the shortest retention and without work is dropped.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.errors import LockNotAvailable, ObjectInUse
from psycopg.rows import class_row

from shared.platform.database.pool import Database, fetch_scalar

# Any fixed number; the scheduler that holds this lock is the one that changes partitions.
_PARTITIONS_LOCK = 0x6D697A616E_02
# A transaction that waits for a table lock makes all others queue behind it.
_LOCK_TIMEOUT = "80ms"
# And one that stalls while it holds the lock stops all others.
_IDLE_TIMEOUT = "2s"

_BEGIN = """
select set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true),
       pg_try_advisory_xact_lock(%s)"""
# Uses the clock of the ids, not mizan_now(): ids decide which month a row belongs to.
_MONTHS = """
select parent.relname as parent, month.relname as name,
       (select 12 * extract(year from now) + extract(month from now)
        from (select uuid_extract_timestamp(uuidv7()) at time zone 'UTC' as now))::int
       - (12 * left(right(month.relname, 7), 4)::int + right(month.relname, 2)::int) as months_ago,
       exists (select from pg_inherits where inhrelid = month.oid and inhparent = parent.oid) as attached
from pg_class as parent join pg_class as month
     on month.relnamespace = parent.relnamespace and month.relkind = 'r'
        and month.relname ~ ('^' || parent.relname || '_[0-9]{4}_(0[1-9]|1[0-2])$')
where parent.oid = any(%s::regclass[]) order by months_ago desc, parent"""
_CREATE = "select make_coming_month(%s, %s)"
_DETACH = "select detach_old_month(%s, %s)"
_DROP = "select drop_old_month(%s, %s)"
_HAS_WORK = "select month_has_unfinished_work(%s, %s)"
_COUNT_STRAYS = "select count_rows_without_month(%s)"


class PartitionInUseError(Exception):
    """A partition is in use and cannot be changed now; retry later."""


class PartitionsLockedError(Exception):
    """Another scheduler is changing partitions."""


@dataclass(frozen=True, slots=True)
class MonthPartition:
    parent: str
    name: str
    months_ago: int
    """0 is the current month; coming months are negative."""
    attached: bool


@contextmanager
def partition_transaction(database: Database) -> Iterator[Connection[Any]]:
    """Open a transaction to change partitions, which waits for no lock and is open in one scheduler at a time.

    Raises PartitionsLockedError if another scheduler has one, PartitionInUseError if a lock cannot be had at once.
    """
    with database.transaction() as connection:
        row = connection.execute(_BEGIN, (_LOCK_TIMEOUT, _IDLE_TIMEOUT, _PARTITIONS_LOCK)).fetchone()
        if row is None or not row[2]:
            raise PartitionsLockedError("another scheduler is changing partitions")
        try:
            yield connection
        except (LockNotAvailable, ObjectInUse) as taken:
            raise PartitionInUseError(str(taken.diag.message_primary)) from taken


def list_month_partitions(connection: Connection[Any], parents: Iterable[str]) -> list[MonthPartition]:
    """Return the partitions of these tables, the oldest first."""
    return (
        connection.cursor(row_factory=class_row(MonthPartition)).execute(_MONTHS, (list(parents),)).fetchall()
    )


def attached_month_ages(months: Sequence[MonthPartition], parent: str) -> set[int]:
    """Return how many months ago each attached partition of a table was."""
    return {month.months_ago for month in months if month.attached and month.parent == parent}


def create_month(connection: Connection[Any], parent: str, ahead: int) -> None:
    connection.execute(_CREATE, (parent, ahead))


def detach_month(connection: Connection[Any], month: MonthPartition) -> None:
    """Detach the month, and then look for unfinished work once more: from then on nobody can add any."""
    connection.execute(_DETACH, (month.parent, month.name))


def drop_month(connection: Connection[Any], month: MonthPartition) -> None:
    connection.execute(_DROP, (month.parent, month.name))


def has_unfinished_work(connection: Connection[Any], month: MonthPartition) -> bool:
    """Return whether the month has an unprocessed event or a pending delivery.

    Events and tries are in the same month as their delivery.
    """
    return bool(fetch_scalar(connection, _HAS_WORK, (month.parent, month.name)))


def count_stray_rows(connection: Connection[Any], parent: str) -> int:
    """Count the rows in the default partition, up to 10,000."""
    return int(fetch_scalar(connection, _COUNT_STRAYS, (parent,)))
