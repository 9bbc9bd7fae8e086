"""Counts an application's payments and deliveries by day and outcome. Every look is bounded."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from psycopg import Connection

from services.dashboard.days import begin_of
from shared.domain.intents.states import IntentStatus

DAYS = 14
MOST_A_DAY = 100_000
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
        limit {MOST_A_DAY + 1}
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
        limit {MOST_A_DAY + 1}
    ) as found
    group by status
) as counted"""

OUTCOMES = {
    IntentStatus.SUCCEEDED: "paid",
    IntentStatus.CANCELED: "expired",
    IntentStatus.REQUIRES_PAYMENT_METHOD: "open",
    IntentStatus.PROCESSING: "open",
}


@dataclass(frozen=True, slots=True)
class DayOfPayments:
    """Of those created on that day."""

    day: date
    paid: int = 0
    expired: int = 0
    open: int = 0


@dataclass(frozen=True, slots=True)
class DayOfDeliveries:
    """Of events of that day."""

    day: date
    succeeded: int = 0
    pending: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Counts:
    payments: list[DayOfPayments]
    """Oldest day first."""
    deliveries: list[DayOfDeliveries]
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


def count(connection: Connection[Any], application_id: UUID, today: date) -> Counts:
    """Of the days up to and with today, as days begin in Libya."""
    days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    values = {
        "application": application_id,
        "statuses": list(IntentStatus),
        "begins": [begin_of(day) for day in days],
        "ends": [begin_of(day + timedelta(days=1)) for day in days],
    }
    by_status = connection.execute(PAYMENTS_SQL.encode(), values).fetchall()
    payments = [(number, OUTCOMES[status], counted) for number, status, counted, _ in by_status]
    deliveries = connection.execute(DELIVERIES_SQL.encode(), values).fetchall()
    return Counts(
        payments=[DayOfPayments(day, **_of_day(number, payments)) for number, day in enumerate(days, 1)],
        deliveries=[
            DayOfDeliveries(day, **_of_day(number, deliveries)) for number, day in enumerate(days, 1)
        ],
        paid_amount=sum(amount for _, status, _, amount in by_status if status == IntentStatus.SUCCEEDED),
        is_cut=_is_cut(payments, deliveries),
    )


def _of_day(number: int, rows: Sequence[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for of_day, outcome, counted in rows:
        if of_day == number:
            found[outcome] = found.get(outcome, 0) + min(counted, MOST_A_DAY)
    return found


def _is_cut(payments: Sequence[Any], deliveries: Sequence[Any]) -> bool:
    """A day's payments are counted by outcome, its deliveries all together."""
    of_days: Counter[int] = Counter()
    for number, _, counted in deliveries:
        of_days[number] += counted
    return any(
        counted > MOST_A_DAY for counted in [*of_days.values(), *(counted for _, _, counted in payments)]
    )
