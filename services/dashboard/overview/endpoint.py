"""Looks up the newest deliveries of an application: how its endpoint answers, and how soon it has them."""

from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection

from services.dashboard.days import floor_of
from services.dashboard.deliveries.newest import newest_sql
from services.dashboard.overview.health import TriedDelivery
from shared.domain.deliveries.try_results import NO_URL, ResponseClass, matching_facets
from shared.platform.database.stable_plans import read_in_index_order
from shared.platform.uuids import uuid7_datetime

NEWEST_TRIED = 100
NEWEST_SUCCEEDED = 1000

TRIED = [
    facet
    for answered in ResponseClass
    if answered is not ResponseClass.NOT_TRIED
    for facet in matching_facets(response=answered)
]
SUCCEEDED = matching_facets(status="succeeded")


NEWEST_TRIED_SQL = newest_sql(
    "id, event, status, url, last_status_code, last_failure, is_test, updated_at",
    NEWEST_TRIED,
    f"last_failure is distinct from '{NO_URL}'",
)
# The first answer that was a success: a resend later on does not make it slower.
TIMES_SQL = f"""
with succeeded as materialized ({newest_sql("id", NEWEST_SUCCEEDED, "not is_test")})
select greatest(0, 1000 * extract(epoch from first.at - uuid_extract_timestamp(id)) + first.duration_ms)::float8
from succeeded cross join lateral (
    select at, duration_ms from webhook_tries
    where delivery_id = succeeded.id and status_code between 200 and 299 order by number limit 1
) as first"""


def newest_tried(
    connection: Connection[Any], application_id: UUID, begin: datetime, end: datetime
) -> list[TriedDelivery]:
    """Newest first, tests too: somebody who mends an endpoint sees that it works again."""
    values = {"application": application_id, "facets": TRIED, **_between(begin, end)}
    read_in_index_order(connection)
    return [
        TriedDelivery(row[0], uuid7_datetime(row[0]), *row[1:])
        for row in connection.execute(NEWEST_TRIED_SQL.encode(), values)
    ]


def times_to_delivery(
    connection: Connection[Any], application_id: UUID, begin: datetime, end: datetime
) -> list[float]:
    """Milliseconds from the event to its success, of the newest that succeeded."""
    values = {"application": application_id, "facets": SUCCEEDED, **_between(begin, end)}
    read_in_index_order(connection)
    return [row[0] for row in connection.execute(TIMES_SQL.encode(), values)]


def _between(begin: datetime, end: datetime) -> dict[str, UUID]:
    return {"lowest": floor_of(begin), "behind": floor_of(end)}
