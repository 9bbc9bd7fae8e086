"""Creates the partitions of the coming months, and detaches and drops those past their retention."""

import logging
from collections.abc import Sequence
from itertools import count
from typing import Any

from prometheus_client import Counter, Gauge
from psycopg import Connection

from services.scheduler.partition_tables import (
    MonthPartition,
    PartitionInUseError,
    PartitionsLockedError,
    attached_month_ages,
    count_stray_rows,
    create_month,
    detach_month,
    drop_month,
    has_unfinished_work,
    list_month_partitions,
    partition_transaction,
)
from shared.platform.database.pool import Database
from shared.platform.settings import RetentionSettings

AHEAD = Gauge(
    "mizan_partitions_months_ahead", "Months ahead that have a partition, for the table with the fewest"
)
DROPPED = Counter(
    "mizan_partitions_dropped", "Monthly partitions dropped at the end of their retention", ["table"]
)
RETAINED = Gauge(
    "mizan_partitions_not_dropped",
    "Monthly partitions past their retention that cannot be dropped; the log says why",
    ["table"],
)
STRAY_ROWS = Gauge(
    "mizan_partitions_default_rows", "Rows in the default partition (counted up to 10,000)", ["table"]
)

MONTHS_AHEAD = 3
_INTERVAL_S = 60.0
_BUSY_INTERVAL_S = 5.0

_log = logging.getLogger(__name__)


class MonthMissingError(Exception):
    """Rows go into the default partition, or soon will; an operator has to look at it."""


class MonthPartitions:
    name = "partitions"

    def __init__(self, database: Database, kept: RetentionSettings) -> None:
        self._database = database
        self._kept = {
            "intent_events": kept.events_months,
            "webhook_deliveries": kept.deliveries_months,
            "webhook_tries": kept.deliveries_months,
        }
        self._held: set[str] = set()

    def run_once(self) -> float:
        """Create the missing months, and drop at most one old month of one table."""
        try:
            made = [self._create(parent, ahead) for ahead, parent in self._missing_months()]
            self._count_strays()
            dropped = self._drop_detached_month()
            if not dropped and self._detach_old_month():
                dropped = self._drop_detached_month()
        except (PartitionInUseError, PartitionsLockedError) as not_now:
            _log.info("%s; retrying at the next run", not_now)
            return _INTERVAL_S
        return _BUSY_INTERVAL_S if dropped or any(made) else _INTERVAL_S

    def close(self) -> None:
        """The process closes the database."""

    def _missing_months(self) -> list[tuple[int, str]]:
        """Return the months to create and their tables, the most urgent first."""
        with partition_transaction(self._database) as connection:
            months = list_month_partitions(connection, self._kept)
        for parent in self._kept:
            self._check_clock_not_behind([month for month in months if month.parent == parent])
        attached = {parent: attached_month_ages(months, parent) for parent in self._kept}
        AHEAD.set(min(next(n for n in count() if -n - 1 not in have) for have in attached.values()))
        return [
            (n, parent) for n in range(MONTHS_AHEAD + 1) for parent in attached if -n not in attached[parent]
        ]

    @staticmethod
    def _check_clock_not_behind(months: Sequence[MonthPartition]) -> None:
        """Raise MonthMissingError if all months are in the future: the clock is wrong.

        A month created by such a clock would count as an old one, with new rows in it, once the clock is right.
        """
        if months and all(month.months_ago < 0 for month in months):
            raise MonthMissingError(f"the server's clock is behind: even {months[0].name} is in the future")

    def _create(self, parent: str, ahead: int) -> bool:
        try:
            with partition_transaction(self._database) as connection:
                create_month(connection, parent, ahead)
        except PartitionInUseError as in_use:
            if ahead <= 1:
                raise MonthMissingError(
                    f"{parent} has no partition for {ahead} months ahead: {in_use}"
                ) from in_use
            _log.info("%s; the partition for %d months ahead is created later", in_use, ahead)
            return False
        return True

    def _count_strays(self) -> None:
        with partition_transaction(self._database) as connection:
            for parent in self._kept:
                STRAY_ROWS.labels(parent).set(count_stray_rows(connection, parent))

    def _detach_old_month(self) -> bool:
        with partition_transaction(self._database) as connection:
            month = self._oldest_to_remove(connection, attached=True)
            if month is None:
                return False
            detach_month(connection, month)
        return True

    def _drop_detached_month(self) -> bool:
        """Drop a month that was just detached, or that an interrupted run left detached."""
        with partition_transaction(self._database) as connection:
            month = self._oldest_to_remove(connection, attached=False)
            if month is None:
                return False
            drop_month(connection, month)
        _log.info("dropped %s: older than %d months", month.name, self._kept[month.parent])
        DROPPED.labels(month.parent).inc()
        return True

    def _oldest_to_remove(self, connection: Connection[Any], *, attached: bool) -> MonthPartition | None:
        months = list_month_partitions(connection, self._kept)
        old = [month for month in months if month.months_ago > self._kept[month.parent]]
        held = {month.name: why for month in old if (why := self._reason_to_keep(connection, month, months))}
        for name in held.keys() - self._held:
            _log.warning("%s is past its retention but is not dropped: %s", name, held[name])
        self._held = set(held)
        for parent in self._kept:
            RETAINED.labels(parent).set(sum(month.parent == parent for month in old if month.name in held))
        return next((month for month in old if month.attached is attached and month.name not in held), None)

    def _reason_to_keep(
        self, connection: Connection[Any], month: MonthPartition, months: Sequence[MonthPartition]
    ) -> str | None:
        # To a clock that has jumped ahead everything is old, but then months are missing in between.
        if not attached_month_ages(months, month.parent).issuperset(range(self._kept[month.parent] + 1)):
            return "a later month within the retention is missing"
        return "it has unfinished work" if has_unfinished_work(connection, month) else None
