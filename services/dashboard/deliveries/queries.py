"""Queries for deliveries: the list, one delivery with its tries, and the secret versions that signed them.

The cost of a page of the list does not depend on how many deliveries there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor
from psycopg.rows import class_row

from services.dashboard.deliveries.forms import DeliveryFilters
from shared.console.bounded_search import LookedBack
from shared.domain.deliveries.try_results import FACET_SQL, RESPONSE_BODY_LIMIT
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import in_index_order
from shared.platform.sanitize import sanitize_text
from shared.platform.uuids import uuid7_datetime

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Delivery:
    id: UUID
    intent_uuid: UUID
    event: str
    status: str
    tries: int
    step: int
    next_due_at: datetime | None
    last_status_code: int | None
    last_failure: str | None
    url: str
    secret_version: int
    is_test: bool
    is_set_aside: bool
    merchant_reference: str | None = None
    """Of its payment, like the following ones; None for a test."""
    reference: str | None = None
    amount: int | None = None
    currency: str | None = None

    @property
    def created_at(self) -> datetime:
        """When the event happened, taken from the id."""
        return uuid7_datetime(self.id)


@dataclass(frozen=True, slots=True)
class DeliveryTry:
    number: int
    step: int | None
    """The step of the retry schedule; None for a resend."""
    at: datetime
    duration_ms: int
    url: str
    status_code: int | None
    failure: str | None
    secret_version: int
    response_body: bytes = field(repr=False)

    @property
    def response_text(self) -> str:
        return sanitize_text(self.response_body)

    @property
    def is_truncated(self) -> bool:
        return len(self.response_body) >= RESPONSE_BODY_LIMIT


@dataclass(frozen=True, slots=True)
class SecretVersion:
    version: int
    created_at: datetime


# `offset 0` makes the planner look up the payment of each row. The payment of a test does not exist.
_WITH_PAYMENT = """left join lateral (
    select merchant_reference, reference, amount, currency from payment_intents
    where uuid = d.intent_uuid and application_id = %(application)s offset 0) as i on true"""
_DELIVERY = f"""
select d.id, d.intent_uuid, d.event, d.status, d.tries, d.step, d.next_due_at, d.last_status_code, d.last_failure,
       d.url, d.secret_version, d.is_test, d.set_aside_at is not null as is_set_aside,
       i.merchant_reference, i.reference, i.amount, i.currency
from webhook_deliveries as d {_WITH_PAYMENT} where d.id = %(delivery)s and d.application_id = %(application)s"""
# A resend is signed with the secret that is current when it is sent; other tries with the one of the delivery.
TRIES_SQL = """
select t.number, t.step, t.at, t.duration_ms, t.url, t.status_code, t.failure,
       coalesce(t.response_body, '') as response_body,
       case when t.step is not null then %(delivery_version)s
            else coalesce((select max(version) from webhook_secrets
                           where application_id = %(application)s and created_at <= t.at), %(delivery_version)s)
       end as secret_version
from webhook_tries as t where t.delivery_id = %(delivery)s order by t.number desc limit 100"""
_SIGNING_VERSIONS = """
select version, created_at from webhook_secrets
where application_id = %s and version = any(%s) order by version desc"""
# A resend that is not sent within minutes never is: the URL was removed meanwhile, or webhooks were paused. One of a
# bulk resend is not sent either if the delivery has succeeded.
_PENDING_RESEND = """
select r.created_at from resend_requests as r
where r.delivery_id = %(delivery)s and r.created_at > mizan_now() - interval '10 minutes'
  and not exists (select from webhook_tries as t where t.delivery_id = %(delivery)s and t.resend_id = r.id)
  and not (r.unless_succeeded and exists (select from webhook_deliveries
                                          where id = %(delivery)s and status = 'succeeded'))
order by r.created_at desc limit 1"""


def find_delivery(connection: Connection[Any], application_id: UUID, delivery_id: UUID) -> Delivery | None:
    """Return the delivery if it belongs to this application, else None."""
    with connection.cursor(row_factory=class_row(Delivery)) as cursor:
        return cursor.execute(
            _DELIVERY.encode(), {"delivery": delivery_id, "application": application_id}
        ).fetchone()


def list_tries(connection: Connection[Any], application_id: UUID, delivery: Delivery) -> list[DeliveryTry]:
    """Latest first."""
    values = {
        "delivery": delivery.id,
        "application": application_id,
        "delivery_version": delivery.secret_version,
    }
    with connection.cursor(row_factory=class_row(DeliveryTry)) as cursor:
        return cursor.execute(TRIES_SQL, values).fetchall()


def list_secret_versions(
    connection: Connection[Any], application_id: UUID, versions: Sequence[int]
) -> list[SecretVersion]:
    """Latest first."""
    with connection.cursor(row_factory=class_row(SecretVersion)) as cursor:
        return cursor.execute(_SIGNING_VERSIONS, (application_id, list(versions))).fetchall()


def find_pending_resend(connection: Connection[Any], delivery_id: UUID) -> datetime | None:
    """Return when a resend was requested that has not been sent yet, or None."""
    row = connection.execute(_PENDING_RESEND, {"delivery": delivery_id}).fetchone()
    return None if row is None else row[0]


def newest_deliveries_sql(columns: str, limit: int, condition: str = "true") -> str:
    """Return SQL for the newest deliveries that have one of the facets %(facets)s and an id in a range.

    It reads the newest of each facet and merges them, so its cost does not depend on how many others there are.
    Comparing and ordering by the pair (facet, id) leaves the planner no other index to use. The limits are literals
    because the planner guesses badly for parameters.
    """
    return f"""
select {columns} from unnest(%(facets)s::smallint[]) as wanted (facet)
cross join lateral (select * from webhook_deliveries
                    where application_id = %(application)s and id >= %(from_id)s and id < %(until_id)s
                      and ({FACET_SQL}, id) >= (wanted.facet, %(from_id)s)
                      and ({FACET_SQL}, id) < (wanted.facet, %(until_id)s)
                    order by {FACET_SQL} desc, id desc limit {limit}) as newest
where {condition} order by id desc limit {limit}"""


def _with_payments_sql(deliveries_sql: str) -> str:
    return f"""
select d.*, i.merchant_reference, i.reference, i.amount, i.currency
from ({deliveries_sql}) as d {_WITH_PAYMENT} order by d.id desc"""


_LIMIT = PAGE_SIZE + 1  # one more than a page, to know whether there is another

_COLUMNS = """id, intent_uuid, event, status, tries, next_due_at, last_status_code, last_failure, is_test,
    set_aside_at is not null as is_set_aside"""
IN_RANGE = "application_id = %(application)s and id >= %(from_id)s and id < %(until_id)s"

HAS_FACET = f"(%(facets)s::smallint[] is null or {FACET_SQL} = any(%(facets)s::smallint[]))"

_ALL_SQL = _with_payments_sql(
    f"select {_COLUMNS} from webhook_deliveries where {IN_RANGE} order by id desc limit {_LIMIT}"
)
_FILTERED_SQL = _with_payments_sql(newest_deliveries_sql(_COLUMNS, _LIMIT))
# Few rows have this id or intent. `offset 0` keeps the planner from using an index for the other conditions.
_SEARCHED_SQL = _with_payments_sql(
    f"""
select {_COLUMNS}
from (select * from webhook_deliveries where id = %(searched_id)s
      union all
      (select * from webhook_deliveries
       where intent_uuid = %(searched_id)s and id <> %(searched_id)s offset 0)) as found
where {IN_RANGE} and {HAS_FACET}
order by id desc limit {_LIMIT}"""
)
_CHOSEN_SQL = _with_payments_sql(
    f"select {_COLUMNS} from webhook_deliveries where id = any(%(ids)s) and {IN_RANGE}"
)


@dataclass(frozen=True, slots=True)
class DeliverySummary:
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
    merchant_reference: str | None = None
    """Of its payment, like the following ones; None for a test."""
    reference: str | None = None
    amount: int | None = None
    currency: str | None = None

    @property
    def created_at(self) -> datetime:
        """When the event happened, taken from the id, by which the list is ordered."""
        return uuid7_datetime(self.id)


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    deliveries: Sequence[DeliverySummary]
    before: UUID | None
    """The next page has ids before this one; None if this is the last page."""
    looked_back: LookedBack | None = None
    """How far back a search looked, if it ended on this page."""


def list_deliveries(
    database: Database, application_id: UUID, filters: DeliveryFilters, before: UUID | None
) -> DeliveryPage:
    if filters.errors:
        return DeliveryPage([], None)
    statement, values = page_statement(application_id, filters, before)
    with in_index_order(database) as cursor:
        return _read_page(_read_rows(cursor.execute(statement.encode(), values)))


def page_statement(
    application_id: UUID, filters: DeliveryFilters, before: UUID | None
) -> tuple[str, dict[str, object]]:
    if filters.searched_id is not None:
        statement = _SEARCHED_SQL
    else:
        statement = _ALL_SQL if filters.facets is None else _FILTERED_SQL
    return statement, page_values(application_id, filters, before)


def page_values(application_id: UUID, filters: DeliveryFilters, before: UUID | None) -> dict[str, object]:
    until_id = filters.until_id
    return {
        "application": application_id,
        "from_id": filters.from_id,
        "until_id": until_id if before is None else min(before, until_id),
        "facets": filters.facets,
        "searched_id": filters.searched_id,
    }


def select_deliveries(
    cursor: Cursor[Any], values: dict[str, object], ids: Sequence[UUID]
) -> list[DeliverySummary]:
    """Return those of the deliveries that belong to the application and the range, newest first."""
    return _read_rows(cursor.execute(_CHOSEN_SQL.encode(), values | {"ids": list(ids)}))


def _read_rows(cursor: Cursor[Any]) -> list[DeliverySummary]:
    return [DeliverySummary(*row) for row in cursor.fetchall()]


def _read_page(found: Sequence[DeliverySummary]) -> DeliveryPage:
    return DeliveryPage(found[:PAGE_SIZE], found[PAGE_SIZE - 1].id if len(found) > PAGE_SIZE else None)
