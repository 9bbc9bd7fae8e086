"""Counts an application's payments and deliveries by day and outcome. Every look is bounded."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from services.dashboard.days import first_uuid_at, start_of_day
from services.dashboard.deliveries.queries import newest_deliveries_sql
from services.dashboard.overview.health import TriedDelivery
from shared.domain.deliveries.try_results import NO_URL, ResponseClass, matching_facets
from shared.domain.intents.states import IntentStatus
from shared.platform.database.stable_plans import read_in_index_order
from shared.platform.uuids import uuid7_datetime

DAYS = 14
MAX_PER_DAY = 100_000
"""Of each outcome. Beyond, the page says that there are more."""

_DAYS = "unnest(%(begins)s::timestamptz[], %(ends)s::timestamptz[]) with ordinality as day (begin, behind, number)"
# The index has all that is asked for, so that no payment is looked at itself.
PAYMENTS_SQL = f"""
select day.number, wanted.status, counted.count, counted.amount
from {_DAYS} cross join unnest(%(statuses)s::text[]) as wanted (status)
cross join lateral (
    select count(*), coalesce(sum(amount), 0)::bigint as amount from (
        select amount from payment_intents
        where application_id = %(application)s and status = wanted.status
          and uuid >= uuid7_floor(day.begin) and uuid < uuid7_floor(day.behind)
        limit {MAX_PER_DAY + 1}
    ) as found
) as counted
where counted.count > 0"""
DELIVERIES_SQL = f"""
select day.number, counted.status, counted.count
from {_DAYS}
cross join lateral (
    select status, count(*) from (
        select status from webhook_deliveries
        where application_id = %(application)s and not is_test
          and id >= uuid7_floor(day.begin) and id < uuid7_floor(day.behind)
        limit {MAX_PER_DAY + 1}
    ) as found
    group by status
) as counted"""

PAYMENT_OUTCOMES = {
    IntentStatus.SUCCEEDED: "paid",
    IntentStatus.CANCELED: "expired",
    IntentStatus.REQUIRES_PAYMENT_METHOD: "open",
    IntentStatus.PROCESSING: "open",
}


@dataclass(frozen=True, slots=True)
class PaymentDay:
    """Of those created on that day."""

    day: date
    paid: int = 0
    expired: int = 0
    open: int = 0


@dataclass(frozen=True, slots=True)
class DeliveryDay:
    """Of events of that day."""

    day: date
    succeeded: int = 0
    pending: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class DailyCounts:
    payments: list[PaymentDay]
    """Oldest day first."""
    deliveries: list[DeliveryDay]
    paid_amount: int
    is_cut: bool
    """Some day had more than is counted."""

    @property
    def paid(self) -> int:
        return sum(day.paid for day in self.payments)

    @property
    def created(self) -> int:
        return sum(day.paid + day.expired + day.open for day in self.payments)

    @property
    def succeeded(self) -> int:
        return sum(day.succeeded for day in self.deliveries)

    @property
    def all_deliveries(self) -> int:
        return sum(day.succeeded + day.pending + day.failed for day in self.deliveries)


def count_days(connection: Connection[Any], application_id: UUID, today: date) -> DailyCounts:
    """Of the days up to and with today, as days begin in Libya."""
    days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    values = {
        "application": application_id,
        "statuses": list(IntentStatus),
        "begins": [start_of_day(day) for day in days],
        "ends": [start_of_day(day + timedelta(days=1)) for day in days],
    }
    read_in_index_order(connection)
    by_status = connection.execute(PAYMENTS_SQL.encode(), values).fetchall()
    payments = [(number, PAYMENT_OUTCOMES[status], counted) for number, status, counted, _ in by_status]
    deliveries = connection.execute(DELIVERIES_SQL.encode(), values).fetchall()
    return DailyCounts(
        payments=[PaymentDay(day, **_counts_of_day(number, payments)) for number, day in enumerate(days, 1)],
        deliveries=[
            DeliveryDay(day, **_counts_of_day(number, deliveries)) for number, day in enumerate(days, 1)
        ],
        paid_amount=sum(amount for _, status, _, amount in by_status if status == IntentStatus.SUCCEEDED),
        is_cut=_is_cut(payments, deliveries),
    )


def _counts_of_day(number: int, rows: Sequence[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for of_day, outcome, counted in rows:
        if of_day == number:
            found[outcome] = found.get(outcome, 0) + min(counted, MAX_PER_DAY)
    return found


def _is_cut(payments: Sequence[Any], deliveries: Sequence[Any]) -> bool:
    """A day's payments are counted by outcome, its deliveries all together."""
    of_days: Counter[int] = Counter()
    for number, _, counted in deliveries:
        of_days[number] += counted
    return any(
        counted > MAX_PER_DAY for counted in [*of_days.values(), *(counted for _, _, counted in payments)]
    )


NEWEST_TRIED = 100
NEWEST_SUCCEEDED = 1000

TRIED = [
    facet
    for answered in ResponseClass
    if answered is not ResponseClass.NOT_TRIED
    for facet in matching_facets(response=answered)
]
SUCCEEDED = matching_facets(status="succeeded")


NEWEST_TRIED_SQL = newest_deliveries_sql(
    "id, event, status, url, last_status_code, last_failure, is_test, updated_at",
    NEWEST_TRIED,
    f"last_failure is distinct from '{NO_URL}'",
)
# The first answer that was a success: a resend later on does not make it slower.
TIMES_SQL = f"""
with succeeded as materialized ({newest_deliveries_sql("id", NEWEST_SUCCEEDED, "not is_test")})
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
    return {"lowest": first_uuid_at(begin), "behind": first_uuid_at(end)}


_SETUP_STATUS = """
select mizan_now() as now, webhooks_paused_at as paused_at,
       exists (select from credentials where application_id = a.id and kind = 'api_key' and revoked_at is null)
       and exists (select from credentials where application_id = a.id and kind = 'access_token' and revoked_at is null)
           as has_credentials,
       exists (select from payment_intents where application_id = a.id) as has_payments
from applications as a where id = %s"""


@dataclass(frozen=True, slots=True)
class SetupStatus:
    now: datetime
    """By the database's clock."""
    paused_at: datetime | None
    """An operator has paused its webhooks."""
    has_credentials: bool
    """An API key and an access token that work."""
    has_payments: bool


def find_setup_status(connection: Connection[Any], application_id: UUID) -> SetupStatus:
    read_in_index_order(connection)
    with connection.cursor(row_factory=class_row(SetupStatus)) as cursor:
        found = cursor.execute(_SETUP_STATUS, (application_id,)).fetchone()
    assert found is not None
    return found
