"""The search for payments: by index in full or by the beginning, else newest first within a period.

References are found by the indexes that keep them unique, of all time. Customers, descriptions, amounts, parts of words
and the filter for declined payments are looked for one payment after the other (`bounded_search`).
"""

from typing import Any
from uuid import UUID

from psycopg import Cursor

from services.dashboard.payments.forms import PaymentFilters
from services.dashboard.payments.queries import (
    IS_DUPLICATE,
    LAST_ID,
    LAST_IS_DECLINED,
    NEWEST_OF_STATUSES,
    Payment,
    page_values,
    select_payments,
)
from shared.console.bounded_search import (
    BATCH,
    Batch,
    PageRequest,
    SearchPage,
    make_page,
    scan_newest_first,
)
from shared.console.days import start_of_day
from shared.console.search_text import SearchText
from shared.domain.intents.states import IntentStatus
from shared.platform.database.pool import Database, fetch_scalar
from shared.platform.database.stable_plans import in_index_order

MAX_BY_PREFIX = 200
"""If more references begin with the text, it is too common for an index: the scan finds the newest ones."""
_LEAST_OF_REFERENCE = 4
"""With fewer characters, the references of all other merchants would be read, too."""

EXACT_SQL = """
select uuid from payment_intents where uuid = %(uuid)s
union all
select uuid from payment_intents where reference = %(reference)s
union all
select uuid from payment_intents where application_id = %(application)s and merchant_reference = any(%(spellings)s)"""
# Ordered by the column of the unique index, so that the planner has no other index to use.
REFERENCE_PREFIX_SQL = f"""
select uuid from payment_intents
where reference >= %(reference)s::text and reference < %(reference)s::text || 'zzzzzzzzzz'
order by reference limit {MAX_BY_PREFIX + 1}"""
MERCHANT_REFERENCE_PREFIX_SQL = f"""
select found.uuid from unnest(%(spellings)s::text[]) as given (text)
cross join lateral (
    select uuid from payment_intents
    where application_id = %(application)s
      and merchant_reference >= given.text and merchant_reference < given.text || chr(1114111)
    order by merchant_reference limit {MAX_BY_PREFIX + 1}
) as found
limit {MAX_BY_PREFIX + 1}"""

# `offset 0` makes the planner look up rows one by one. The newest ones come from an index-only scan: with other columns
# in it, the planner would read the primary key backwards, past the payments of all other applications.
_LOOKED_AT = f"""
select i.* from ({NEWEST_OF_STATUSES.format(most=BATCH)}) as newest
cross join lateral (
    select uuid, status, merchant_reference, reference, customer_external_id, description, amount
    from payment_intents where uuid = newest.uuid offset 0
) as i"""
_CONTAINS = """(i.merchant_reference ~ %(pattern)s or i.reference ~ %(pattern)s or i.customer_external_id ~ %(pattern)s
  or i.description ~ %(pattern)s or i.amount = %(amount)s)"""
SCAN_SQL = f"""
with looked_at as materialized ({_LOOKED_AT})
select array(select i.uuid from looked_at as i
             where (%(pattern)s::text is null or {_CONTAINS})
               and (not %(declined)s or {LAST_IS_DECLINED}) and (not %(duplicates)s or {IS_DUPLICATE})
             limit %(most)s),
       (select uuid from looked_at offset {BATCH - 1})"""
_HAS_OLDER_OF_STATUS = """(%(statuses)s::text[] @> array['{status}'] and exists (select from payment_intents
    where application_id = %(application)s and status = '{status}' and uuid < %(first)s))"""
HAS_OLDER_SQL = "select " + " or ".join(_HAS_OLDER_OF_STATUS.format(status=status) for status in IntentStatus)


def search_payments(
    database: Database, application_id: UUID, filters: PaymentFilters, request: PageRequest
) -> SearchPage[Payment]:
    """Return a page of the payments that match, newest first.

    A reference that equals or begins with the text is also found if it is older than the period, unless `filters` have
    a first day. Raises StatementTimeoutError if nothing could be read in time.
    """

    def read_batch(before: UUID) -> Batch:
        values = scan_values(application_id, filters, request, before)
        with in_index_order(database) as cursor:
            ((found, last),) = cursor.execute(SCAN_SQL.encode(), values).fetchall()
        return found, last

    def has_older(first: UUID) -> bool:
        values = {"application": application_id, "statuses": filters.statuses, "first": first}
        with in_index_order(database) as cursor:
            return bool(fetch_scalar(cursor, HAS_OLDER_SQL, values))

    if not filters.statuses:
        return SearchPage([], None, None)
    scan = scan_newest_first(read_batch, request.before or LAST_ID, request.size)
    with in_index_order(database) as cursor:
        known = [] if filters.text is None else find_by_index(cursor, application_id, filters.text)
        found = select_payments(cursor, application_id, filters, request.before, [*scan.matches, *known])
    return make_page(found, lambda payment: payment.uuid, scan, request, has_older)


def find_by_index(cursor: Cursor[Any], application_id: UUID, text: SearchText) -> list[UUID]:
    """Return intents whose UUID or reference is this text, and a limited number whose reference begins with it.

    Some may belong to another application: the caller must check that.
    """
    values = {
        "application": application_id,
        "uuid": text.uuid,
        "reference": text.reference,
        "spellings": text.spellings,
    }
    found = [row[0] for row in cursor.execute(EXACT_SQL.encode(), values)]
    prefixes = [MERCHANT_REFERENCE_PREFIX_SQL]
    if len(text.reference) >= _LEAST_OF_REFERENCE and text.reference.isascii() and text.reference.isalnum():
        prefixes.append(REFERENCE_PREFIX_SQL)
    for statement in prefixes:
        beginning = [row[0] for row in cursor.execute(statement.encode(), values)]
        if len(beginning) <= MAX_BY_PREFIX:
            found += beginning
    return list(dict.fromkeys(found))


def scan_values(
    application_id: UUID, filters: PaymentFilters, request: PageRequest, before: UUID
) -> dict[str, object]:
    """Return the values for SCAN_SQL. It returns the matches of a batch, and the last payment of a full batch.

    The order of a materialized `looked_at` is that of its rows: newest first.
    """
    return page_values(application_id, filters, before) | {
        "begin": start_of_day(request.since),
        "pattern": None if filters.text is None else filters.text.pattern,
        "amount": None if filters.text is None else filters.text.amount,
        "most": request.size + 1,
    }
