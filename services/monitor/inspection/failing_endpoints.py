"""When the endpoint of an application is failing: one definition for the overview, its metric and alert, and the pages
about applications.

The newest tried deliveries to the current URL were all not accepted, and one of them still waits for its next try. So
it holds for merchants with few payments and between two tries that are hours apart, and ends when a delivery is
accepted, the URL is changed, or nothing is retried any more; what has failed for good by then is in the list of
exhausted deliveries. An application that an operator has paused is not failing: nothing is sent to it. Nor are those
whose newest deliveries last failed at our own egress proxy, of which the endpoint knows nothing.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.deliveries.try_results import FACET_SQL, PROXY_FAILURES, ResponseClass, matching_facets

FAILURES_IN_A_ROW = 3
"""An endpoint is failing if this many of its newest tried deliveries were not accepted."""
MAX_SUSPECTS = 200
"""How many applications `count_failing_applications` judges at most."""
TRIED = [
    facet
    for response in ResponseClass
    if response is not ResponseClass.NOT_TRIED
    for facet in matching_facets(response=response)
]
"""The value of %(tried)s in the statements that use IS_FAILING_SQL."""

_PROXY_FAILURES_SQL = "'{" + ",".join(sorted(PROXY_FAILURES)) + "}'::text[]"
# For a row `a` of applications. The newest of each facet are read in the order of the index.
IS_FAILING_SQL = f"""
a.webhooks_paused_at is null and coalesce((
    select count(*) = {FAILURES_IN_A_ROW} and bool_and(status <> 'succeeded') and bool_or(status = 'pending') from (
        select status from unnest(%(tried)s::smallint[]) as wanted (facet)
        cross join lateral (
            select id, status, url, last_failure from webhook_deliveries
            where application_id = a.id
              and ({FACET_SQL}, id) >= (wanted.facet, '00000000-0000-0000-0000-000000000000'::uuid)
              and ({FACET_SQL}, id) <= (wanted.facet, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
            order by {FACET_SQL} desc, id desc limit {FAILURES_IN_A_ROW}) as newest
        where newest.url = a.webhook_url and coalesce(newest.last_failure, '') <> all ({_PROXY_FAILURES_SQL})
        order by newest.id desc limit {FAILURES_IN_A_ROW}) as tried), false)"""
COUNT_SQL = f"""
select count(*) from unnest(%(suspects)s::uuid[]) as suspect (id)
cross join lateral (select from applications as a where a.id = suspect.id and {IS_FAILING_SQL} offset 0) as failing"""


def count_failing_applications(connection: Connection[Any], suspects: Sequence[UUID]) -> int:
    """Count the failing endpoints among these applications, of which the first MAX_SUSPECTS are judged.

    Only applications with tried, pending deliveries can be failing. Call it in a transaction with
    `read_in_index_order`.
    """
    if not suspects:
        return 0
    values = {"suspects": list(suspects[:MAX_SUSPECTS]), "tried": TRIED}
    row = connection.execute(COUNT_SQL.encode(), values).fetchone()
    assert row is not None
    return int(row[0])
