"""Queries for payments: the list, page by page, and one payment with everything that happened to it.

A page costs the same however many payments there are. Pages follow each other by UUIDv7, so by time. Limits are
literals, because for a parameter the planner assumes a tenth of the table.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor
from psycopg.rows import class_row

from services.dashboard.payments.forms import DECLINABLE, PaymentFilters
from shared.console.bounded_search import LookedBack
from shared.domain.attempts.states import AttemptState
from shared.domain.intents.states import IntentStatus

MAX_ROWS = 200
"""The most rows of each kind. A bot at the checkout must not make the page endless."""
_CLOCK_TOLERANCE_MS = 3_600_000
"""Events are newer than their intent, up to this clock difference. Older partitions need not be read."""

PAGE_SIZE = 50
LAST_ID = UUID(int=(1 << 128) - 1)

IN_RANGE = """{0} < least(%(before)s::uuid, uuid7_floor(%(end)s::timestamptz))
  and {0} >= coalesce(uuid7_floor(%(begin)s::timestamptz), '00000000-0000-0000-0000-000000000000')"""
# Reads the newest of each status from one index, then merges them.
NEWEST_OF_STATUSES = f"""
select newest.uuid from unnest(%(statuses)s::text[]) as wanted (status)
cross join lateral (
    select uuid from payment_intents
    where application_id = %(application)s and status = wanted.status and {IN_RANGE.format("uuid")}
    order by uuid desc limit {{most}}
) as newest
order by newest.uuid desc limit {{most}}"""
# Only a paid intent can have a duplicate payment.
_DUPLICATES = f"""
select distinct intent_uuid as uuid from payment_attempts
where application_id = %(application)s and state = 'duplicate' and {IN_RANGE.format("intent_uuid")}
  and '{IntentStatus.SUCCEEDED}' = any(%(statuses)s::text[])
order by intent_uuid desc limit {{most}}"""
_CHOSEN = "select unnest(%(uuids)s::uuid[]) as uuid"

# `offset 0` makes the planner look up rows one by one, instead of reading all rows of an application to join them.
# The application is checked again here: however an intent was found, nobody sees another application's.
IS_DUPLICATE = """exists (select from payment_attempts as t where t.application_id = %(application)s
                     and t.intent_uuid = i.uuid and t.state = 'duplicate' offset 0)"""
# By time and not by id, although the order is the same: the planner must not read the primary key backwards.
LAST_IS_DECLINED = f"""case when i.status in ({", ".join(f"'{status}'" for status in DECLINABLE)}) then
    (select t.state from payment_attempts as t where t.intent_uuid = i.uuid
     order by t.created_at desc, t.id desc limit 1) = '{AttemptState.DECLINED}' else false end"""
_SELECT = f"""
with found as materialized ({{found}})
select i.uuid, i.merchant_reference, i.reference, i.amount, i.currency, i.status, i.description,
       i.customer_external_id, i.expires_at, i.created_at, i.updated_at,
       (select t.method from payment_attempts as t where t.intent_uuid = i.uuid and t.state = 'paid') as method,
       {IS_DUPLICATE} as is_duplicate, coalesce({LAST_IS_DECLINED}, false) as is_declined
from found cross join lateral (select * from payment_intents where uuid = found.uuid offset 0) as i
where i.application_id = %(application)s and i.status = any(%(statuses)s::text[]) and {IN_RANGE.format("i.uuid")}
  and (not %(duplicates)s or {IS_DUPLICATE}) and (not %(declined)s or {LAST_IS_DECLINED})
order by i.uuid desc"""


@dataclass(frozen=True, slots=True)
class Payment:
    uuid: UUID
    merchant_reference: str
    reference: str
    amount: int
    currency: str
    status: str
    description: str | None
    customer_external_id: str | None
    expires_at: datetime
    created_at: datetime
    updated_at: datetime
    method: str | None
    """The method of the attempt that paid it."""
    is_duplicate: bool
    """Whether it was paid more than once."""
    is_declined: bool = False
    """Whether it is not paid and its last attempt was declined."""

    @property
    def paid_at(self) -> datetime | None:
        """When it was paid. A paid intent is never updated again."""
        return self.updated_at if self.status == IntentStatus.SUCCEEDED else None


@dataclass(frozen=True, slots=True)
class PaymentPage:
    payments: list[Payment]
    older: UUID | None
    """The next page has UUIDs before this one; None if this is the last page."""
    looked_back: LookedBack | None = None
    """How far back a search looked, if it ended on this page."""


def list_payments(
    cursor: Cursor[Any],
    application_id: UUID,
    filters: PaymentFilters,
    before: UUID | None = None,
    size: int = PAGE_SIZE,
) -> PaymentPage:
    statement, values = page_statement(application_id, filters, before, size)
    found = [Payment(*row) for row in cursor.execute(statement, values)]
    return PaymentPage(found[:size], found[size - 1].uuid if len(found) > size else None)


def page_statement(
    application_id: UUID, filters: PaymentFilters, before: UUID | None, size: int
) -> tuple[bytes, dict[str, object]]:
    """Return the statement and its values. It reads one row more than `size`, to know whether there is another page."""
    found = (_DUPLICATES if filters.duplicates else NEWEST_OF_STATUSES).format(most=int(size) + 1)
    return _SELECT.format(found=found).encode(), page_values(application_id, filters, before)


def page_values(application_id: UUID, filters: PaymentFilters, before: UUID | None) -> dict[str, object]:
    return {
        "application": application_id,
        "statuses": filters.statuses,
        "before": before or LAST_ID,
        "begin": filters.begin,
        "end": filters.end,
        "duplicates": filters.duplicates,
        "declined": filters.declined,
    }


def select_payments(
    cursor: Cursor[Any], application_id: UUID, filters: PaymentFilters, before: UUID | None, uuids: list[UUID]
) -> list[Payment]:
    """Return those of the intents that belong to the application and match the filters, newest first."""
    values = page_values(application_id, filters, before) | {"uuids": list(dict.fromkeys(uuids))}
    return [Payment(*row) for row in cursor.execute(_SELECT.format(found=_CHOSEN).encode(), values)]


_INTENT = """
select uuid, merchant_reference, reference, amount, currency, status, description, customer_external_id, return_url,
       metadata::text as metadata, expires_at, created_at, updated_at
from payment_intents where uuid = %(intent)s and application_id = %(application)s"""
_ATTEMPTS = f"""
select id, method, provider, state, reason, provider_reference, created_at, updated_at, handled_at
from payment_attempts
where intent_uuid = %(intent)s order by id desc limit {MAX_ROWS}"""
_EVENTS = f"""
select seq, type, at, wrong_code from intent_events
where intent_uuid = %(intent)s and id >= %(since)s order by seq desc limit {MAX_ROWS}"""
_DELIVERIES = f"""
select id, event, status, tries, last_status_code, next_due_at, created_at from webhook_deliveries
where intent_uuid = %(intent)s and application_id = %(application)s and id >= %(since)s
order by id desc limit {MAX_ROWS}"""


@dataclass(frozen=True, slots=True)
class PaymentDetails:
    uuid: UUID
    merchant_reference: str
    reference: str
    amount: int
    currency: str
    status: str
    description: str | None
    customer_external_id: str | None
    return_url: str | None
    metadata: str | None
    expires_at: datetime
    created_at: datetime
    updated_at: datetime

    @property
    def readable_metadata(self) -> str:
        """The metadata as indented JSON, or an empty string."""
        if self.metadata is None:
            return ""
        return json.dumps(json.loads(self.metadata), indent=2, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class PaymentAttempt:
    id: UUID
    method: str
    provider: str
    state: str
    reason: str | None
    provider_reference: str | None
    created_at: datetime
    updated_at: datetime
    handled_at: datetime | None = None
    """For a duplicate payment: when an operator marked it as handled."""


@dataclass(frozen=True, slots=True)
class PaymentEvent:
    seq: int
    type: str
    at: datetime
    wrong_code: int | None = None
    """Which entry of a code it was, if the event followed from a wrong one-time code."""


@dataclass(frozen=True, slots=True)
class PaymentDelivery:
    id: UUID
    event: str
    status: str
    tries: int
    last_status_code: int | None
    next_due_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PaymentHistory:
    details: PaymentDetails
    attempts: list[PaymentAttempt]
    """Oldest first, like events and deliveries."""
    events: list[PaymentEvent]
    deliveries: list[PaymentDelivery]

    @property
    def duplicates(self) -> int:
        """How many duplicate payments nobody has handled yet."""
        return sum(
            attempt.state == AttemptState.DUPLICATE and attempt.handled_at is None
            for attempt in self.attempts
        )

    @property
    def declined_attempt(self) -> PaymentAttempt | None:
        """The last attempt, if it was declined and the payment is not paid."""
        last = self.attempts[-1] if self.attempts and self.details.status in DECLINABLE else None
        return last if last and last.state == AttemptState.DECLINED else None

    @property
    def is_open(self) -> bool:
        return self.details.status in (IntentStatus.REQUIRES_PAYMENT_METHOD, IntentStatus.PROCESSING)

    @property
    def is_truncated(self) -> bool:
        """Whether there is more than the page shows."""
        return any(len(rows) == MAX_ROWS for rows in (self.attempts, self.events, self.deliveries))


def find_payment(connection: Connection[Any], application_id: UUID, intent: UUID) -> PaymentHistory | None:
    values = {"application": application_id, "intent": intent, "since": _earliest_id(intent)}
    with connection.cursor(row_factory=class_row(PaymentDetails)) as cursor:
        details = cursor.execute(_INTENT, values).fetchone()
    if details is None:
        return None
    with connection.cursor(row_factory=class_row(PaymentAttempt)) as cursor:
        attempts = cursor.execute(_ATTEMPTS, values).fetchall()
    with connection.cursor(row_factory=class_row(PaymentEvent)) as cursor:
        events = cursor.execute(_EVENTS, values).fetchall()
    with connection.cursor(row_factory=class_row(PaymentDelivery)) as cursor:
        deliveries = cursor.execute(_DELIVERIES, values).fetchall()
    return PaymentHistory(details, attempts[::-1], events[::-1], deliveries[::-1])


def _earliest_id(intent: UUID) -> UUID:
    made_ms = intent.int >> 80
    return UUID(int=max(0, made_ms - _CLOCK_TOLERANCE_MS) << 80)
