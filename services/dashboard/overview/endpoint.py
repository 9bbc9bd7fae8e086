"""Looks up the newest deliveries of an application: how its endpoint answers, and how soon it has them."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from psycopg import Connection

from services.dashboard.overview.health import TriedDelivery
from shared.uuid7 import made_at
from shared.webhooks.facets import Answered, facets
from shared.webhooks.failures import NO_URL

NEWEST_TRIED = 100
NEWEST_SUCCEEDED = 1000

TRIED = [
    facet
    for answered in Answered
    if answered is not Answered.NOT_TRIED
    for facet in facets(answered=answered)
]
SUCCEEDED = facets(status="succeeded")


def _newest(columns: str, condition: str, most: int) -> str:
    """Of each facet its newest, of these the newest: however many wait untried, nobody walks past them."""
    return f"""
select {columns} from unnest(%(facets)s::smallint[]) as wanted (facet)
cross join lateral (
    select id, event, status, url, last_status_code, last_failure, is_test, updated_at from webhook_deliveries
    where application_id = %(application)s and id >= uuid7_floor(%(begin)s) and id < uuid7_floor(%(end)s)
      and delivery_facet(status, event, last_status_code, last_failure) = wanted.facet
    order by id desc limit {most}
) as newest
where {condition}
order by id desc limit {most}"""  # noqa: S608  from constants of this file


NEWEST_TRIED_SQL = _newest(
    "id, event, status, url, last_status_code, last_failure, is_test, updated_at",
    f"last_failure is distinct from '{NO_URL}'",
    NEWEST_TRIED,
)
# The first answer that was a success: a resend later on does not make it slower.
TIMES_SQL = f"""
with succeeded as materialized ({_newest("id", "not is_test", NEWEST_SUCCEEDED)})
select greatest(0, 1000 * extract(epoch from first.at - uuid_extract_timestamp(id)) + first.duration_ms)::float8
from succeeded cross join lateral (
    select at, duration_ms from webhook_tries
    where delivery_id = succeeded.id and status_code between 200 and 299 order by number limit 1
) as first"""  # noqa: S608  from constants of this file


def newest_tried(
    connection: Connection[Any], application_id: UUID, begin: datetime, end: datetime
) -> list[TriedDelivery]:
    """Newest first, tests too: somebody who mends an endpoint sees that it works again."""
    values = {"application": application_id, "facets": TRIED, "begin": begin, "end": end}
    _read_in_order(connection)
    return [
        TriedDelivery(row[0], datetime.fromtimestamp(made_at(str(row[0])), UTC), *row[1:])
        for row in connection.execute(NEWEST_TRIED_SQL.encode(), values)
    ]


def times_to_delivery(
    connection: Connection[Any], application_id: UUID, begin: datetime, end: datetime
) -> list[float]:
    """Milliseconds from the event to its success, of the newest that succeeded."""
    values = {"application": application_id, "facets": SUCCEEDED, "begin": begin, "end": end}
    _read_in_order(connection)
    return [row[0] for row in connection.execute(TIMES_SQL.encode(), values)]


def _read_in_order(connection: Connection[Any]) -> None:
    """Where the planner believes that a month is short, it would rather read and sort all of it."""
    connection.execute("set local enable_sort = off")
