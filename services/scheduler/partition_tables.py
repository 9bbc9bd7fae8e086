"""The tables of months: which are there, how long ago each was, and how they are changed without making others wait."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql
from psycopg.errors import LockNotAvailable
from psycopg.rows import class_row

from shared.platform.database.pool import Database

# Any fixed number; whoever holds this lock is the one scheduler that changes partitions.
_PARTITIONS_LOCK = 0x6D697A616E_02
# Whoever waits for a lock on a whole table makes everybody else queue behind.
_LOCK_TIMEOUT = "80ms"

# And whoever stalls while holding it would stop everybody.
_IDLE_TIMEOUT = "2s"

_BEGIN = """
select set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true),
       pg_try_advisory_xact_lock(%s)"""
# The clock of the ids, not mizan_now(): ids decide which month a row goes to.
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
_CREATE = """
select make_month_partition(%s, (uuid_extract_timestamp(uuidv7()) at time zone 'UTC'
                                 + make_interval(months => %s))::date)"""
_DETACH = "alter table {parent} detach partition {month}"
_DROP = "drop table {month}"

_NOT_TAKEN_IN = """
select from {month}
where taken_in_at is null and type in ('payment_intent.succeeded', 'payment_intent.canceled') limit 1"""
_IS_THERE = "select where to_regclass(%s) is not null"
_PENDING = "select from {month} where next_due_at is not null limit 1"


class PartitionInUseError(Exception):
    """Somebody uses what was to be changed; later it may work."""


class PartitionsLockedError(Exception):
    """Another scheduler changes partitions at this moment."""


@dataclass(frozen=True, slots=True)
class MonthPartition:
    parent: str
    name: str
    months_ago: int
    """0 is the month that ids are in now; those to come are below."""
    attached: bool


@contextmanager
def partition_transaction(database: Database) -> Iterator[Connection[Any]]:
    """A transaction that waits for nobody, and that no other scheduler has at the same time."""
    with database.transaction() as connection:
        row = connection.execute(_BEGIN, (_LOCK_TIMEOUT, _IDLE_TIMEOUT, _PARTITIONS_LOCK)).fetchone()
        if row is None or not row[2]:
            raise PartitionsLockedError("another scheduler is at the partitions")
        try:
            yield connection
        except LockNotAvailable as taken:
            raise PartitionInUseError(str(taken.diag.message_primary)) from taken


def list_month_partitions(connection: Connection[Any], parents: Iterable[str]) -> list[MonthPartition]:
    """The oldest first."""
    return (
        connection.cursor(row_factory=class_row(MonthPartition)).execute(_MONTHS, (list(parents),)).fetchall()
    )


def attached_month_ages(months: Sequence[MonthPartition], parent: str) -> set[int]:
    """How many months ago each was."""
    return {month.months_ago for month in months if month.attached and month.parent == parent}


def create_month(connection: Connection[Any], parent: str, ahead: int) -> None:
    connection.execute(_CREATE, (parent, ahead))


def detach_month(connection: Connection[Any], month: MonthPartition) -> None:
    connection.execute(_named(_DETACH, month.name, month.parent))


def drop_month(connection: Connection[Any], month: MonthPartition) -> None:
    connection.execute(_named(_DROP, month.name))


def has_unfinished_work(connection: Connection[Any], month: MonthPartition) -> bool:
    """An event nobody has taken in, or a pending delivery: events and tries are of their delivery's month."""
    if month.parent == "intent_events" and connection.execute(_named(_NOT_TAKEN_IN, month.name)).rowcount:
        return True
    deliveries = "webhook_deliveries" + month.name.removeprefix(month.parent)
    if not connection.execute(_IS_THERE, (deliveries,)).rowcount:
        return False
    return bool(connection.execute(_named(_PENDING, deliveries)).rowcount)


def _named(statement: str, month: str, parent: str = "") -> sql.Composed:
    return sql.SQL(statement).format(month=sql.Identifier(month), parent=sql.Identifier(parent))
