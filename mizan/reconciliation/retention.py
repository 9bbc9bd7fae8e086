"""How far back the history goes: old months are dropped, so nothing in them can be checked."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from services.scheduler.partition_tables import attached_month_ages, list_month_partitions
from shared.platform.database.pool import fetch_scalar

_PARENTS = ("intent_events", "webhook_deliveries", "webhook_tries")
_FLOOR = """
select uuid7_floor((date_trunc('month', uuid_extract_timestamp(uuidv7()) at time zone 'UTC')
                    - make_interval(months => %s)) at time zone 'UTC')"""


@dataclass(frozen=True, slots=True)
class RetainedHistory:
    """The smallest id from which on each table is complete."""

    events: UUID
    deliveries: UUID
    """Of the deliveries and their tries."""

    @property
    def both(self) -> UUID:
        return max(self.events, self.deliveries)


def find_retained_history(connection: Connection[Any]) -> RetainedHistory:
    months = list_month_partitions(connection, _PARENTS)
    floors = [
        fetch_scalar(connection, _FLOOR, (_months_back(attached_month_ages(months, parent)),))
        for parent in _PARENTS
    ]
    return RetainedHistory(events=floors[0], deliveries=max(floors[1:]))


def _months_back(attached: set[int]) -> int:
    """Return the months before the first gap: before it a month may have been moved elsewhere."""
    past = sorted(month for month in attached if month >= 0)
    if not past:
        return 0
    return next(month for month in range(past[0], past[0] + len(past) + 1) if month + 1 not in attached)
