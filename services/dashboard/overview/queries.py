"""Queries for the overview: counts by day, the newest deliveries, and how far the application is set up.

Every query reads a bounded number of rows.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from services.dashboard.deliveries.queries import newest_deliveries_sql
from services.dashboard.overview.health import TriedDelivery
from shared.console.days import first_uuid_at, start_of_day
from shared.domain.deliveries.try_results import FACET_SQL, NO_URL, ResponseClass, matching_facets
from shared.domain.intents.states import EventType, IntentStatus
from shared.platform.database.stable_plans import read_in_index_order
from shared.platform.uuids import uuid7_datetime

DAYS = 14
MAX_PER_DAY = 100_000
"""The most that are counted of each outcome. If there are more, the page says so."""

_DAYS = "unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) with ordinality as day (starts_at, ends_at, number)"
# The index covers the query, so no row of the table is read.
PAYMENTS_SQL = f"""
select day.number, wanted.status, counted.count, counted.amount
from {_DAYS} cross join unnest(%(statuses)s::text[]) as wanted (status)
cross join lateral (
    select count(*), coalesce(sum(amount), 0)::bigint as amount from (
        select amount from payment_intents
        where application_id = %(application)s and status = wanted.status
          and uuid >= uuid7_floor(day.starts_at) and uuid < uuid7_floor(day.ends_at)
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
          and id >= uuid7_floor(day.starts_at) and id < uuid7_floor(day.ends_at)
        limit {MAX_PER_DAY + 1}
    ) as found
    group by status
) as counted"""

NEWEST_TRIED = 100

TRIED = [
    facet
    for response in ResponseClass
    if response is not ResponseClass.NOT_TRIED
    for facet in matching_facets(response=response)
]
SUCCEEDED = matching_facets(status="succeeded")
CANCELLATION_SUCCEEDED = matching_facets(status="succeeded", event=EventType.CANCELED)


NEWEST_TRIED_SQL = newest_deliveries_sql(
    "id, event, status, url, last_status_code, last_failure, is_test, updated_at",
    NEWEST_TRIED,
    f"last_failure is distinct from '{NO_URL}'",
)
# Of the newest 1000, up to the first successful response: a later resend does not change the time. It is a function of
# the schema (revision 0025), because row-level security would look up the delivery of each try.
TIMES_SQL = """
select * from delivery_times(%(application)s, %(facets)s::smallint[], %(from_id)s::uuid, %(until_id)s::uuid)"""
SETUP_STATUS_SQL = f"""
select mizan_now() as now, webhooks_paused_at as paused_at,
       exists (select from payment_intents where application_id = a.id) as has_intents,
       exists (select from payment_intents where application_id = a.id and status = 'succeeded') as is_paid,
       exists (select from webhook_deliveries where application_id = a.id
               and {FACET_SQL} = any(%(succeeded)s::smallint[])) as is_delivered,
       exists (select from webhook_deliveries where application_id = a.id
               and {FACET_SQL} = any(%(canceled)s::smallint[])) as is_cancellation_delivered,
       exists (select from applications as live
               where live.merchant_id = a.merchant_id and live.mode = 'live') as is_live
from applications as a where id = %(application)s"""

PAYMENT_OUTCOMES = {
    IntentStatus.SUCCEEDED: "paid",
    IntentStatus.CANCELED: "expired",
    IntentStatus.REQUIRES_PAYMENT_METHOD: "open",
    IntentStatus.PROCESSING: "open",
}


@dataclass(frozen=True, slots=True)
class PaymentDay:
    """Payments that were created on this day."""

    day: date
    paid: int = 0
    expired: int = 0
    open: int = 0


@dataclass(frozen=True, slots=True)
class DeliveryDay:
    """Deliveries of events of this day."""

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
    is_truncated: bool
    """Some day had more than MAX_PER_DAY."""

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
    """Count the last 14 days including today, in Libya's time zone."""
    days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    values = {
        "application": application_id,
        "statuses": list(IntentStatus),
        "starts": [start_of_day(day) for day in days],
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
        is_truncated=_is_truncated(payments, deliveries),
    )


def _counts_of_day(number: int, rows: Sequence[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for of_day, outcome, counted in rows:
        if of_day == number:
            found[outcome] = found.get(outcome, 0) + min(counted, MAX_PER_DAY)
    return found


def _is_truncated(payments: Sequence[Any], deliveries: Sequence[Any]) -> bool:
    """The limit applies to payments by outcome, and to all deliveries of a day together."""
    of_days: Counter[int] = Counter()
    for number, _, counted in deliveries:
        of_days[number] += counted
    return any(
        counted > MAX_PER_DAY for counted in [*of_days.values(), *(counted for _, _, counted in payments)]
    )


def list_newest_tried(
    connection: Connection[Any], application_id: UUID, begin: datetime, end: datetime
) -> list[TriedDelivery]:
    """Return the newest deliveries that were tried, newest first. Tests count, so a repaired endpoint shows at once."""
    values = {"application": application_id, "facets": TRIED, **_id_range(begin, end)}
    read_in_index_order(connection)
    return [
        TriedDelivery(row[0], uuid7_datetime(row[0]), *row[1:])
        for row in connection.execute(NEWEST_TRIED_SQL.encode(), values)
    ]


def list_delivery_times(
    connection: Connection[Any], application_id: UUID, begin: datetime, end: datetime
) -> list[float]:
    """Return milliseconds from event to successful response, for the newest deliveries that succeeded."""
    values = {"application": application_id, "facets": SUCCEEDED, **_id_range(begin, end)}
    read_in_index_order(connection)
    return [row[0] for row in connection.execute(TIMES_SQL.encode(), values)]


def _id_range(begin: datetime, end: datetime) -> dict[str, UUID]:
    return {"from_id": first_uuid_at(begin), "until_id": first_uuid_at(end)}


@dataclass(frozen=True, slots=True)
class SetupStatus:
    now: datetime
    """The database's clock."""
    paused_at: datetime | None
    """When an operator paused its webhooks, or None."""
    has_intents: bool
    is_paid: bool
    """Whether a payment succeeded."""
    is_delivered: bool
    """Whether the endpoint accepted a delivery, which may be a test delivery."""
    is_cancellation_delivered: bool
    """Whether the endpoint accepted that a payment was canceled."""
    is_live: bool
    """Whether its merchant has a live application, perhaps this one."""

    @property
    def steps(self) -> tuple[bool, ...]:
        """Whether each step to the first real payment is done."""
        return self.has_intents, self.is_paid, self.is_delivered, self.is_cancellation_delivered, self.is_live


def setup_parameters(application_id: UUID) -> dict[str, object]:
    return {"application": application_id, "succeeded": SUCCEEDED, "canceled": CANCELLATION_SUCCEEDED}


def find_setup_status(connection: Connection[Any], application_id: UUID) -> SetupStatus:
    read_in_index_order(connection)
    with connection.cursor(row_factory=class_row(SetupStatus)) as cursor:
        found = cursor.execute(SETUP_STATUS_SQL.encode(), setup_parameters(application_id)).fetchone()
    assert found is not None
    return found
