"""The search for payments of all merchants: by index in full or by the beginning, else newest first within a period.

UUIDs of payments, attempts and deliveries, and both references, are found by indexes, of all time. Everything else is
looked for one payment after the other (`bounded_search`).
"""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from psycopg import Cursor
from psycopg.rows import class_row

from shared.console.bounded_search import (
    BATCH,
    Batch,
    PageRequest,
    SearchPage,
    first_day,
    make_page,
    scan_newest_first,
)
from shared.console.days import first_uuid_at, start_of_day
from shared.console.search_text import SearchText
from shared.platform.database.pool import Database, fetch_scalar
from shared.platform.database.stable_plans import in_index_order

PAGE_SIZE = 50
MAX_BY_INDEX = 200
"""If more references begin with the text, it is too common for an index: the scan finds the newest ones."""
_LEAST_OF_PREFIX = 4
_LAST_ID = UUID(int=(1 << 128) - 1)

EXACT_SQL = """
select uuid from payment_intents where uuid = %(uuid)s
union all
select uuid from payment_intents where reference = %(reference)s
union all
select intent_uuid from payment_attempts where id = %(uuid)s
union all
select intent_uuid from webhook_deliveries where id = %(uuid)s and intent_uuid is not null"""
# Ordered by the column of the unique index, so that the planner has no other index to use.
REFERENCE_PREFIX_SQL = f"""
select uuid from payment_intents
where reference >= %(reference)s::text and reference < %(reference)s::text || 'zzzzzzzzzz'
order by reference limit {MAX_BY_INDEX + 1}"""
# A merchant's reference is unique within an application only, and indexed by application.
MERCHANT_REFERENCE_SQL = f"""
select found.uuid from applications as a cross join lateral (
    select uuid from payment_intents where application_id = a.id and merchant_reference = any(%(spellings)s) offset 0
) as found
limit {MAX_BY_INDEX + 1}"""
MERCHANT_REFERENCE_PREFIX_SQL = f"""
select found.uuid from applications as a cross join unnest(%(spellings)s::text[]) as given (text)
cross join lateral (
    select uuid from payment_intents
    where application_id = a.id
      and merchant_reference >= given.text and merchant_reference < given.text || chr(1114111)
    order by merchant_reference limit {MAX_BY_INDEX + 1}
) as found
limit {MAX_BY_INDEX + 1}"""

SCAN_SQL = f"""
with looked_at as materialized (
    select uuid, merchant_reference, reference, customer_external_id, description, amount from payment_intents
    where uuid < %(before)s and uuid >= %(first)s order by uuid desc limit {BATCH}
)
select array(select i.uuid from looked_at as i
             where i.merchant_reference ~ %(pattern)s or i.reference ~ %(pattern)s
                or i.customer_external_id ~ %(pattern)s or i.description ~ %(pattern)s or i.amount = %(amount)s
                or exists (select from payment_attempts as t
                           where t.intent_uuid = i.uuid and t.provider_reference ~ %(pattern)s offset 0)
             limit {PAGE_SIZE + 1}),
       (select uuid from looked_at offset {BATCH - 1})"""
_SELECT = """
select i.uuid, i.merchant_reference, i.reference, i.amount, i.currency, i.status, i.created_at,
       a.id as application_id, a.name as application, a.mode, m.name as merchant,
       (select t.id from payment_attempts as t where t.intent_uuid = i.uuid
        order by t.created_at desc, t.id desc limit 1) as attempt_id
from unnest(%(uuids)s::uuid[]) as found (uuid)
cross join lateral (select * from payment_intents where uuid = found.uuid offset 0) as i
join applications as a on a.id = i.application_id join merchants as m on m.id = a.merchant_id
where i.uuid < %(before)s and i.uuid >= %(first)s
order by i.uuid desc"""
_HAS_OLDER = "select exists (select from payment_intents where uuid < %(first)s)"


@dataclass(frozen=True, slots=True)
class FoundPayment:
    uuid: UUID
    merchant_reference: str
    reference: str
    amount: int
    currency: str
    status: str
    created_at: datetime
    application_id: UUID
    application: str
    mode: str
    merchant: str
    attempt_id: UUID | None
    """Its last attempt."""


def search_payments(
    database: Database, text: SearchText, since: date | None = None, before: UUID | None = None
) -> SearchPage[FoundPayment]:
    """Return a page of the payments that match, newest first.

    What an index finds is also found if it is older than the period, unless there is a first day. Raises
    StatementTimeoutError if nothing could be read in time.
    """
    request = PageRequest(first_day(database, since, None), before, PAGE_SIZE, shows_all_found=True)

    def read_batch(before: UUID) -> Batch:
        with in_index_order(database) as cursor:
            ((found, last),) = cursor.execute(
                SCAN_SQL.encode(), scan_values(text, request.since, before)
            ).fetchall()
        return found, last

    def has_older(first: UUID) -> bool:
        with in_index_order(database) as cursor:
            return bool(fetch_scalar(cursor, _HAS_OLDER, {"first": first}))

    scan = scan_newest_first(read_batch, before or _LAST_ID, PAGE_SIZE)
    with in_index_order(database) as cursor:
        found = list(dict.fromkeys([*scan.matches, *find_by_index(cursor, text)]))
        cursor.row_factory = class_row(FoundPayment)
        values = {"uuids": found, "before": before or _LAST_ID, "first": _first_id(since)}
        rows = cursor.execute(_SELECT, values).fetchall()
    return make_page(rows, lambda payment: payment.uuid, scan, request, has_older)


def find_by_index(cursor: Cursor[Any], text: SearchText) -> list[UUID]:
    """Return intents with this UUID or reference, and a limited number whose reference begins with the text."""
    values = {"uuid": text.uuid, "reference": text.reference, "spellings": text.spellings}
    found = [row[0] for row in cursor.execute(EXACT_SQL, values)]
    limited = [MERCHANT_REFERENCE_SQL]
    if len(text.text) >= _LEAST_OF_PREFIX:
        limited.append(MERCHANT_REFERENCE_PREFIX_SQL)
    if len(text.reference) >= _LEAST_OF_PREFIX and text.reference.isascii() and text.reference.isalnum():
        limited.append(REFERENCE_PREFIX_SQL)
    for statement in limited:
        matches = [row[0] for row in cursor.execute(statement.encode(), values)]
        if len(matches) <= MAX_BY_INDEX:
            found += matches
    return found


def scan_values(text: SearchText, since: date, before: UUID) -> dict[str, object]:
    """Return the values for SCAN_SQL. It returns the matches of a batch, and the last payment of a full batch."""
    return {"before": before, "first": _first_id(since), "pattern": text.pattern, "amount": text.amount}


def _first_id(since: date | None) -> UUID:
    return UUID(int=0) if since is None else first_uuid_at(start_of_day(since))
