"""Queries for applications and the state of their webhooks. All counts are bounded."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from services.monitor.inspection.failing_endpoints import IS_FAILING_SQL, TRIED
from shared.domain.deliveries.try_results import FACET_SQL
from shared.platform.database.stable_plans import read_in_index_order
from shared.platform.uuids import parse_uuid

MAX_COUNTED = 10_000

PAGE = 25
MAX_COUNTED_PER_ROW = 100
MAX_SEARCH_LENGTH = 200
_HIGHEST_ID = UUID(int=(1 << 128) - 1)
PENDING_SQL = f"{FACET_SQL} between 100 and 199"
LIST_SQL = f"""
with found as materialized (
    select a.*, m.name as merchant from applications as a join merchants as m on m.id = a.merchant_id
    where a.id < %(before)s
      and (%(text)s = '' or position(lower(%(text)s) in lower(a.name)) > 0
           or position(lower(%(text)s) in lower(m.name)) > 0 or %(id)s in (a.id, m.id))
    order by a.id desc limit {PAGE + 1}
)
select a.id, a.name, a.merchant, a.mode, a.webhook_url, a.webhooks_paused_at as paused_at,
       (select count(*) from (select from webhook_deliveries where application_id = a.id and {PENDING_SQL}
                              limit {MAX_COUNTED_PER_ROW + 1}) as counted) as pending,
       {IS_FAILING_SQL} as is_failing
from found as a order by a.id desc"""


@dataclass(frozen=True, slots=True)
class ApplicationRow:
    id: UUID
    name: str
    merchant: str
    mode: str
    webhook_url: str | None
    paused_at: datetime | None
    pending: int
    """At most MAX_COUNTED_PER_ROW + 1."""
    is_failing: bool

    @property
    def host(self) -> str | None:
        return host_of(self.webhook_url)


@dataclass(frozen=True, slots=True)
class ApplicationPage:
    applications: list[ApplicationRow]
    before: UUID | None
    """The id before which the next page starts, or None on the last page."""


def list_applications(connection: Connection[Any], text: str, before: UUID | None) -> ApplicationPage:
    values = list_parameters(text, before)
    read_in_index_order(connection)
    with connection.cursor(row_factory=class_row(ApplicationRow)) as cursor:
        found = cursor.execute(LIST_SQL.encode(), values).fetchall()
    return ApplicationPage(found[:PAGE], found[PAGE - 1].id if len(found) > PAGE else None)


def list_parameters(text: str, before: UUID | None) -> dict[str, object]:
    return {"text": text, "id": parse_uuid(text), "before": before or _HIGHEST_ID, "tried": TRIED}


def host_of(url: str | None) -> str | None:
    """Return the host of a URL. The rest of the URL can contain a token."""
    return urlsplit(url).hostname if url else None


_GET = f"""
select a.id, a.name, a.merchant_id, m.name as merchant, a.mode, a.webhook_url, a.webhooks_paused_at as paused_at,
       a.created_at,
       {IS_FAILING_SQL} as is_failing
from applications as a join merchants as m on m.id = a.merchant_id where a.id = %(application)s"""
_STEPS = f"""
select step, count(*) as count, min(next_due_at) as next_due_at
from (select step, next_due_at from webhook_deliveries
      where application_id = %(application)s and {PENDING_SQL} limit {MAX_COUNTED}) as pending
group by step order by step"""
_SET_ASIDE = f"""
select count(*) from (select from webhook_deliveries where application_id = %(application)s and set_aside_at is not null
                      limit {MAX_COUNTED}) as set_aside"""


@dataclass(frozen=True, slots=True)
class ApplicationFacts:
    id: UUID
    name: str
    merchant_id: UUID
    merchant: str
    mode: str
    webhook_url: str | None
    paused_at: datetime | None
    created_at: datetime
    is_failing: bool

    @property
    def host(self) -> str | None:
        return host_of(self.webhook_url)


@dataclass(frozen=True, slots=True)
class PendingStep:
    step: int
    count: int
    next_due_at: datetime | None


@dataclass(frozen=True, slots=True)
class ApplicationDetails:
    facts: ApplicationFacts
    steps: list[PendingStep]
    """Pending deliveries by the step that comes next."""
    set_aside: int
    """Deliveries that fell due while the application was paused."""

    @property
    def pending(self) -> int:
        return sum(each.count for each in self.steps)

    @property
    def is_all(self) -> bool:
        return self.pending < MAX_COUNTED


def find_application(connection: Connection[Any], application_id: UUID) -> ApplicationDetails | None:
    values = {"application": application_id, "tried": TRIED}
    read_in_index_order(connection)
    with connection.cursor(row_factory=class_row(ApplicationFacts)) as cursor:
        facts = cursor.execute(_GET.encode(), values).fetchone()
    if facts is None:
        return None
    with connection.cursor(row_factory=class_row(PendingStep)) as cursor:
        steps = cursor.execute(_STEPS.encode(), values).fetchall()
    (set_aside,) = connection.execute(_SET_ASIDE.encode(), values).fetchone() or (0,)
    return ApplicationDetails(facts, steps, set_aside)
