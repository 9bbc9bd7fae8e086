"""Which deliveries a bulk resend takes: its two kinds, the statements that find and count them, and their limits.

A bulk resend is for deliveries as they were when it was requested, and takes each of them once, the oldest first.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.deliveries.try_results import FACET_SQL, ResponseClass, matching_facets
from shared.platform.database.stable_plans import read_in_index_order
from shared.platform.uuids import uuid7_datetime

MAX_COUNTED = 10_000
BATCH = 20
"""How many deliveries the scheduler takes at a time."""


class BulkResendKind(StrEnum):
    FAILED = "failed"
    """Failed deliveries of a period."""
    WAITING = "waiting"
    """Pending deliveries that were tried at least once and wait for their next try."""


FACETS = {
    BulkResendKind.FAILED: matching_facets("failed"),
    BulkResendKind.WAITING: [
        facet
        for response in ResponseClass
        if response is not ResponseClass.NOT_TRIED
        for facet in matching_facets("pending", response=response)
    ],
}

# Test deliveries are left out. Facet and id are compared and ordered as pairs, so that the planner can use no other
# index than the one on facets.
_OF_FACET_SQL = f"""
select id from webhook_deliveries as d
where application_id = %(application)s and id > %(after_id)s and id < %(before_id)s
  and ({FACET_SQL}, id) > (wanted.facet, %(after_id)s) and ({FACET_SQL}, id) < (wanted.facet, %(before_id)s)
  and not is_test"""
_IN_ORDER_SQL = f"order by {FACET_SQL}, id"
COUNT_SQL = f"""
select count(*) from (
    select from unnest(%(facets)s::smallint[]) as wanted (facet)
    cross join lateral ({_OF_FACET_SQL} {_IN_ORDER_SQL} offset 0) as found limit {MAX_COUNTED + 1}) as counted"""
OLDEST_SQL = f"""
select oldest.id from unnest(%(facets)s::smallint[]) as wanted (facet)
cross join lateral ({_OF_FACET_SQL} {_IN_ORDER_SQL} limit 1) as oldest
order by id limit 1"""
# A failed delivery that has changed since the bulk resend was requested was resent already, or failed only later. A
# waiting one that its schedule retries meanwhile still gets its resend, because that retry went to the old URL. It is
# left out if its first try came after the request. The limit is a literal for the planner's sake.
_FAILED_BEFORE_SQL = "and updated_at <= %(requested_at)s"
_TRIED_BEFORE_SQL = """
and not exists (select from webhook_tries as t
                where t.delivery_id = d.id and t.number = 1 and t.at > %(requested_at)s offset 0)"""
BATCH_SQL = {
    kind: f"""
select taken.id from unnest(%(facets)s::smallint[]) as wanted (facet)
cross join lateral ({_OF_FACET_SQL} {condition} {_IN_ORDER_SQL} limit {BATCH}) as taken
order by id limit {BATCH}"""
    for kind, condition in (
        (BulkResendKind.FAILED, _FAILED_BEFORE_SQL),
        (BulkResendKind.WAITING, _TRIED_BEFORE_SQL),
    )
}
_PERIOD = "select uuid7_floor(%s), uuid7_floor(%s)"
_LOWEST_ID, _HIGHEST_ID = UUID(int=0), UUID(int=2**128 - 1)


@dataclass(frozen=True, slots=True)
class DeliveryCount:
    count: int
    is_exact: bool
    """False if there are more than MAX_COUNTED."""


def count_failed(
    connection: Connection[Any], application_id: UUID, since: datetime, until: datetime
) -> DeliveryCount:
    """Count the failed deliveries whose events happened in this period, up to MAX_COUNTED."""
    return count_of_period(connection, application_id, BulkResendKind.FAILED, since, until)


def count_of_period(
    connection: Connection[Any], application_id: UUID, kind: BulkResendKind, since: datetime, until: datetime
) -> DeliveryCount:
    """Count the deliveries of this kind whose events happened in this period, up to MAX_COUNTED."""
    period = connection.execute(_PERIOD, (since, until)).fetchone()
    assert period is not None
    return _count(connection, _values(application_id, kind, *period))


def count_waiting(connection: Connection[Any], application_id: UUID) -> DeliveryCount:
    """Count the deliveries that were tried and wait for their next try, up to MAX_COUNTED."""
    return _count(connection, _values(application_id, BulkResendKind.WAITING))


def oldest_waiting_at(connection: Connection[Any], application_id: UUID) -> datetime | None:
    """Return when the event of the oldest waiting delivery happened, or None if none waits."""
    values = _values(application_id, BulkResendKind.WAITING)
    row = read_in_index_order(connection).execute(OLDEST_SQL, values).fetchone()
    return None if row is None else uuid7_datetime(row[0])


def _count(connection: Connection[Any], values: dict[str, object]) -> DeliveryCount:
    row = read_in_index_order(connection).execute(COUNT_SQL, values).fetchone()
    assert row is not None
    return DeliveryCount(min(row[0], MAX_COUNTED), is_exact=row[0] <= MAX_COUNTED)


def _values(
    application_id: UUID, kind: BulkResendKind, after_id: UUID = _LOWEST_ID, before_id: UUID = _HIGHEST_ID
) -> dict[str, object]:
    return {
        "application": application_id,
        "facets": FACETS[kind],
        "after_id": after_id,
        "before_id": before_id,
    }
