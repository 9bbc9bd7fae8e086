"""How far back the history goes: old months are dropped, and nothing can be said of what was in them."""

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
    """The smallest id of which each table has everything since."""

    events: UUID
    deliveries: UUID
    """And their tries."""

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
    """Until the first gap: behind it somebody may have taken a month away."""
    past = sorted(month for month in attached if month >= 0)
    if not past:
        return 0
    return next(month for month in range(past[0], past[0] + len(past) + 1) if month + 1 not in attached)
