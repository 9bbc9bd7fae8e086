"""An application's payments, newest first, page by page: a page costs the same however many payments there are.

Pages follow each other by uuid (v7, so by time). Limits are written out for the planner's sake: of an unknown one it
assumes a tenth of the table.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Cursor

from services.dashboard.payments.filters import Filters
from shared.domain.intents.states import IntentStatus
from shared.platform.uuids import parse_uuid

PAGE = 50
_LAST = UUID(int=(1 << 128) - 1)

_IN_RANGE = """{0} < least(%(before)s::uuid, uuid7_floor(%(end)s::timestamptz))
  and {0} >= coalesce(uuid7_floor(%(begin)s::timestamptz), '00000000-0000-0000-0000-000000000000')"""
# Of each status the newest, all from one index; then the newest of those.
_OF_STATUSES = f"""
select newest.uuid from unnest(%(statuses)s::text[]) as wanted (status)
cross join lateral (
    select uuid from payment_intents
    where application_id = %(application)s and status = wanted.status and {_IN_RANGE.format("uuid")}
    order by uuid desc limit {{most}}
) as newest
order by newest.uuid desc limit {{most}}"""
# Only what is paid can be paid once more.
_DUPLICATES = f"""
select distinct intent_uuid as uuid from payment_attempts
where application_id = %(application)s and state = 'duplicate' and {_IN_RANGE.format("intent_uuid")}
  and '{IntentStatus.SUCCEEDED}' = any(%(statuses)s::text[])
order by intent_uuid desc limit {{most}}"""
_SEARCHED = """
select uuid from payment_intents where uuid = %(uuid)s
union
select uuid from payment_intents where reference = lower(%(text)s)
union
select uuid from payment_intents where application_id = %(application)s and merchant_reference = %(text)s
union
select uuid from payment_intents where application_id = %(application)s and merchant_reference = %(text_as_given)s"""

# All is looked up one by one, behind fences (offset 0), so that no plan reads all of an application to join it. And the
# application is asked for once more: whatever finds an intent, nobody sees another's.
_IS_DUPLICATE = """exists (select from payment_attempts as t where t.application_id = %(application)s
                     and t.intent_uuid = i.uuid and t.state = 'duplicate' offset 0)"""
_SELECT = f"""
with found as materialized ({{found}})
select i.uuid, i.merchant_reference, i.reference, i.amount, i.currency, i.status, i.description,
       i.customer_external_id, i.expires_at, i.created_at, i.updated_at,
       (select t.method from payment_attempts as t where t.intent_uuid = i.uuid and t.state = 'paid') as method,
       {_IS_DUPLICATE} as is_duplicate
from found cross join lateral (select * from payment_intents where uuid = found.uuid offset 0) as i
where i.application_id = %(application)s and i.status = any(%(statuses)s::text[]) and {_IN_RANGE.format("i.uuid")}
  and (not %(duplicates)s or {_IS_DUPLICATE})
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
    """Of the attempt that paid it."""
    is_duplicate: bool
    """It was paid more than once."""

    @property
    def paid_at(self) -> datetime | None:
        """Nothing changes a payment any more once it is paid."""
        return self.updated_at if self.status == IntentStatus.SUCCEEDED else None


@dataclass(frozen=True, slots=True)
class Page:
    payments: list[Payment]
    older: UUID | None
    """The page that follows is before this one; None when this is the last."""


def list_payments(
    cursor: Cursor[Any], application_id: UUID, filters: Filters, before: UUID | None = None, size: int = PAGE
) -> Page:
    statement, values = page_statement(application_id, filters, before, size)
    found = [Payment(*row) for row in cursor.execute(statement, values)]
    return Page(found[:size], found[size - 1].uuid if len(found) > size else None)


def page_statement(
    application_id: UUID, filters: Filters, before: UUID | None, size: int
) -> tuple[bytes, dict[str, object]]:
    """One more than fits on the page, to know whether there is another."""
    if filters.search:
        found = _SEARCHED
    elif filters.duplicates:
        found = _DUPLICATES
    else:
        found = _OF_STATUSES
    text = filters.search.strip()
    values = {
        "application": application_id,
        "statuses": filters.statuses,
        "before": before or _LAST,
        "begin": filters.begin,
        "end": filters.end,
        "duplicates": filters.duplicates,
        "uuid": parse_uuid(text),
        "text": text,
        "text_as_given": filters.search,
    }
    return _SELECT.format(found=found.format(most=int(size) + 1)).encode(), values
