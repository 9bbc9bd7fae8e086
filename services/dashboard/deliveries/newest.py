"""The newest deliveries of an application that have one of some facets, however many others there are."""

from shared.domain.deliveries.try_results import FACET_SQL


def newest_sql(columns: str, most: int, condition: str = "true") -> str:
    """Of each facet its newest, of these the newest. Between the ids `lowest` and `behind`.

    Compared and ordered as pairs, which no other index can help with, they are found by the right one whatever the
    planner believes. The limits are written out for its sake too.
    """
    return f"""
select {columns} from unnest(%(facets)s::smallint[]) as wanted (facet)
cross join lateral (select * from webhook_deliveries
                    where application_id = %(application)s and id >= %(lowest)s and id < %(behind)s
                      and ({FACET_SQL}, id) >= (wanted.facet, %(lowest)s)
                      and ({FACET_SQL}, id) < (wanted.facet, %(behind)s)
                    order by {FACET_SQL} desc, id desc limit {most}) as newest
where {condition} order by id desc limit {most}"""
