"""The whole audit: the consumers, one snapshot of the database, and the sandbox's ledger where there is one."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from mizan.reconciliation.charges import LedgerUnavailableError, SandboxLedger, reconcile_charges
from mizan.reconciliation.checks import (
    Findings,
    ReportProgress,
    RowKind,
    keep_persistent,
    recheck_until_settled,
)
from mizan.reconciliation.consumers import check_consumers
from mizan.reconciliation.deliveries import check_deliveries, check_tries
from mizan.reconciliation.intents import check_attempts, check_event_history
from mizan.reconciliation.retention import find_retained_history
from mizan.reconciliation.stuck import count_waiting, find_stuck
from shared.platform.database.pool import Database
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.settings import KafkaSettings, SandboxSettings

_SET_SNAPSHOT = "set transaction isolation level repeatable read, read only"
# Before the snapshot is taken, by the first select: no month is dropped between that and our look at it.
_LOCK_PARTITIONS = "lock table intent_events, webhook_deliveries, webhook_tries in access share mode"
_COUNT = f"""
select '{RowKind.INTENTS}', count(*) from payment_intents
union all select '{RowKind.ATTEMPTS}', count(*) from payment_attempts
union all select '{RowKind.EVENTS}', count(*) from intent_events
union all select '{RowKind.OUTBOX}', count(*) from outbox
union all select '{RowKind.DELIVERIES}', count(*) from webhook_deliveries where not is_test
union all select '{RowKind.TRIES}', count(*) from webhook_tries"""


@dataclass(frozen=True, slots=True)
class ReconciliationResult:
    found: Findings
    checked: dict[str, int]
    """How many rows there are of each kind."""
    waiting: dict[str, int]
    problems: tuple[str, ...] = ()
    """Why the consumers or the sandbox's ledger could not be checked."""

    @property
    def ok(self) -> bool:
        return not self.found.findings and not self.problems

    @property
    def not_checked(self) -> str | None:
        return "; ".join(self.problems) or None


def reconcile(
    database: Database,
    kafka: KafkaSettings | None,
    sandbox: SandboxSettings | None,
    report_progress: ReportProgress,
) -> ReconciliationResult:
    """Check the database and, where given, the consumers in Kafka and the sandbox's ledger."""
    found, checked, waiting = _check_database(database, report_progress)
    problems: list[str] = []
    if kafka is not None:
        report_progress("the consumers")
        try:
            idle, checked[RowKind.CONSUMERS] = check_consumers(kafka, report_progress)
            found = found.merge(idle)
        except KafkaUnavailableError as away:
            problems.append(f"the consumers: {away}")
    if sandbox is not None:
        report_progress("the sandbox's ledger")
        try:
            with closing(SandboxLedger(sandbox)) as ledger:
                in_ledger, checked[RowKind.CHARGES] = reconcile_charges(database, ledger, report_progress)
            found = found.merge(in_ledger)
        except LedgerUnavailableError as away:
            problems.append(str(away))
    return ReconciliationResult(found, checked, waiting, tuple(problems))


def _check_database(
    database: Database, report_progress: ReportProgress
) -> tuple[Findings, dict[str, int], dict[str, int]]:
    with _snapshot(database) as connection:
        # First, because the clock goes on while the snapshot does not change.
        stuck = find_stuck(connection)
        waiting = count_waiting(connection)
        retained = find_retained_history(connection)
        report_progress("the number of rows")
        checked = dict(connection.execute(_COUNT).fetchall())
        report_progress("intents and their attempts")
        seen = check_attempts(connection)
        report_progress("intents and their events")
        seen = seen.merge(check_event_history(connection, retained))
        report_progress("events and their deliveries")
        seen = seen.merge(check_deliveries(connection, retained))
        report_progress("deliveries and their tries")
        seen = seen.merge(check_tries(connection, retained))

    def recheck(before: Findings) -> Findings:
        with database.transaction() as connection:
            return keep_persistent(before, find_stuck(connection))

    return seen.merge(recheck_until_settled(stuck, recheck, report_progress)), checked, waiting


@contextmanager
def _snapshot(database: Database) -> Iterator[Connection[Any]]:
    """Open a read-only transaction in which all queries see the same moment."""
    with database.transaction() as connection:
        connection.execute(_SET_SNAPSHOT)
        connection.execute(_LOCK_PARTITIONS)
        yield connection
