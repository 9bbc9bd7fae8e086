"""The search for deliveries by the reference or the amount of their payment.

References that equal or begin with the text are found by index. Amounts and parts of references are looked for one
delivery after the other (`bounded_search`).
"""

from uuid import UUID

from services.dashboard.deliveries.forms import LAST_ID, DeliveryFilters
from services.dashboard.deliveries.queries import (
    HAS_FACET,
    IN_RANGE,
    PAGE_SIZE,
    DeliveryPage,
    DeliverySummary,
    page_values,
    select_deliveries,
)
from services.dashboard.payments.search import find_by_index
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

# `offset 0` makes the planner look up the payment of each delivery.
SCAN_SQL = f"""
with looked_at as materialized (
    select id, intent_uuid, delivery_facet
    from webhook_deliveries where {IN_RANGE} order by id desc limit {BATCH}
)
select array(select d.id from looked_at as d cross join lateral (
                 select merchant_reference, reference, amount from payment_intents
                 where uuid = d.intent_uuid and application_id = %(application)s offset 0) as i
             where {HAS_FACET}
               and (i.merchant_reference ~ %(pattern)s or i.reference ~ %(pattern)s or i.amount = %(amount)s)
             limit {PAGE_SIZE + 1}),
       (select id from looked_at offset {BATCH - 1})"""
BY_INTENT_SQL = f"""
select id from (select * from webhook_deliveries where intent_uuid = any(%(intents)s) offset 0) as found
where {IN_RANGE} and {HAS_FACET}"""
_HAS_OLDER = """
select exists (select from webhook_deliveries where application_id = %(application)s and id < %(first)s)"""


def search_deliveries(
    database: Database, application_id: UUID, filters: DeliveryFilters, text: SearchText, before: UUID | None
) -> DeliveryPage:
    """Return a page of the deliveries whose payment matches the text, newest first.

    Raises StatementTimeoutError if nothing could be read in time.
    """
    since = first_day(database, filters.first_day, filters.last_day)
    request = PageRequest(since, before, PAGE_SIZE, shows_all_found=True)

    def read_batch(before: UUID) -> Batch:
        with in_index_order(database) as cursor:
            values = scan_values(application_id, filters, text, request, before)
            ((found, last),) = cursor.execute(SCAN_SQL.encode(), values).fetchall()
        return found, last

    def has_older(first: UUID) -> bool:
        with in_index_order(database) as cursor:
            return bool(fetch_scalar(cursor, _HAS_OLDER, {"application": application_id, "first": first}))

    scan = scan_newest_first(read_batch, before or LAST_ID, PAGE_SIZE)
    values = page_values(application_id, filters, before)
    with in_index_order(database) as cursor:
        values["intents"] = find_by_index(cursor, application_id, text)
        known = [row[0] for row in cursor.execute(BY_INTENT_SQL.encode(), values)]
        found = select_deliveries(cursor, values, [*scan.matches, *known])
    page: SearchPage[DeliverySummary] = make_page(found, lambda each: each.id, scan, request, has_older)
    return DeliveryPage(page.rows, page.next_before, page.looked_back)


def scan_values(
    application_id: UUID, filters: DeliveryFilters, text: SearchText, request: PageRequest, before: UUID
) -> dict[str, object]:
    return page_values(application_id, filters, before) | {
        "from_id": first_uuid_at(start_of_day(request.since)),
        "pattern": text.pattern,
        "amount": text.amount,
    }
