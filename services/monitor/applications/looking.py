"""One application: what is known of it, and what waits to be sent to it. Counts are bounded."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from services.monitor.applications.listing import FAILING_SQL, PENDING_SQL, TRIED, host_of
from shared.platform.database.index_order import read_in_order

MOST_COUNTED = 10_000

_GET = f"""
select a.id, a.name, a.merchant_id, m.name as merchant, a.webhook_url, a.webhooks_paused_at as paused_at, a.created_at,
       coalesce(({FAILING_SQL}), false) as is_failing
from applications as a join merchants as m on m.id = a.merchant_id where a.id = %(application)s"""
_STEPS = f"""
select step, count(*) as count, min(next_due_at) as next_due_at
from (select step, next_due_at from webhook_deliveries
      where application_id = %(application)s and {PENDING_SQL} limit {MOST_COUNTED}) as pending
group by step order by step"""
_PARKED = f"""
select count(*) from (select from webhook_deliveries where application_id = %(application)s and parked_at is not null
                      limit {MOST_COUNTED}) as parked"""


@dataclass(frozen=True, slots=True)
class Facts:
    id: UUID
    name: str
    merchant_id: UUID
    merchant: str
    webhook_url: str | None
    paused_at: datetime | None
    created_at: datetime
    is_failing: bool

    @property
    def host(self) -> str | None:
        return host_of(self.webhook_url)


@dataclass(frozen=True, slots=True)
class Step:
    step: int
    count: int
    next_due_at: datetime | None


@dataclass(frozen=True, slots=True)
class ApplicationInFull:
    facts: Facts
    steps: list[Step]
    """Pending deliveries by the try that comes next."""
    parked: int
    """Fell due while it was paused."""

    @property
    def pending(self) -> int:
        return sum(each.count for each in self.steps)

    @property
    def is_all(self) -> bool:
        return self.pending < MOST_COUNTED


def find_application(connection: Connection[Any], application_id: UUID) -> ApplicationInFull | None:
    values = {"application": application_id, "tried": TRIED}
    read_in_order(connection)
    with connection.cursor(row_factory=class_row(Facts)) as cursor:
        facts = cursor.execute(_GET.encode(), values).fetchone()
    if facts is None:
        return None
    with connection.cursor(row_factory=class_row(Step)) as cursor:
        steps = cursor.execute(_STEPS.encode(), values).fetchall()
    (parked,) = connection.execute(_PARKED.encode(), values).fetchone() or (0,)
    return ApplicationInFull(facts, steps, parked)
