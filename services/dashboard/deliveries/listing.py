"""The pages of the list, newest first. What one costs does not depend on how many deliveries there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Cursor

from services.dashboard.deliveries.filters import Filters
from services.dashboard.deliveries.newest import newest_sql
from shared.domain.deliveries.try_results import FACET_SQL
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import in_index_order
from shared.platform.uuids import uuid7_datetime

PAGE = 50
_MORE = PAGE + 1  # tells whether there is another page

_COLUMNS = """
id, intent_uuid, event, status, tries, next_due_at, last_status_code, last_failure, is_test, set_aside_at is not null"""
_IN_RANGE = "application_id = %(application)s and id >= %(lowest)s and id < %(behind)s"

ALL_SQL = f"""
select {_COLUMNS} from webhook_deliveries where {_IN_RANGE} order by id desc limit {_MORE}"""
FILTERED_SQL = newest_sql(_COLUMNS, _MORE)
# Few rows have this id or this intent: the rest is judged afterwards, and leads to no other index (`offset 0`).
SOUGHT_SQL = f"""
select {_COLUMNS}
from (select * from webhook_deliveries where id = %(sought)s
      union all
      (select * from webhook_deliveries where intent_uuid = %(sought)s and id <> %(sought)s offset 0)) as found
where {_IN_RANGE} and (%(facets)s::smallint[] is null or {FACET_SQL} = any(%(facets)s::smallint[]))
order by id desc limit {_MORE}"""


@dataclass(frozen=True, slots=True)
class Listed:
    id: UUID
    intent_uuid: UUID
    event: str
    status: str
    tries: int
    next_due_at: datetime | None
    last_status_code: int | None
    last_failure: str | None
    is_test: bool
    is_set_aside: bool

    @property
    def created_at(self) -> datetime:
        """When the event happened, by its id; what the list is ordered by."""
        return uuid7_datetime(self.id)


@dataclass(frozen=True, slots=True)
class Page:
    deliveries: Sequence[Listed]
    before: UUID | None
    """Where the next page begins, if there is one."""


def find_page(database: Database, application_id: UUID, filters: Filters, before: UUID | None) -> Page:
    if filters.errors:
        return Page([], None)
    statement, values = page_statement(application_id, filters, before)
    with in_index_order(database) as cursor:
        return _page(cursor.execute(statement.encode(), values))


def page_statement(
    application_id: UUID, filters: Filters, before: UUID | None
) -> tuple[str, dict[str, object]]:
    behind = filters.behind_highest
    values: dict[str, object] = {
        "application": application_id,
        "lowest": filters.lowest,
        "behind": behind if before is None else min(before, behind),
        "facets": filters.facets,
        "sought": filters.sought,
    }
    if filters.sought is not None:
        return SOUGHT_SQL, values
    return (ALL_SQL if filters.facets is None else FILTERED_SQL), values


def _page(cursor: Cursor[Any]) -> Page:
    found = [Listed(*row) for row in cursor.fetchall()]
    return Page(found[:PAGE], found[PAGE - 1].id if len(found) > PAGE else None)
