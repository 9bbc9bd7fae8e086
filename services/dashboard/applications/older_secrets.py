"""How many queued retries are still to come with a secret from before the last roll."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Cursor

from shared.domain.deliveries.try_results import FACET_SQL, matching_facets

_MOST = 5000
# Not by status: it is the facet that has an index.
_COUNT = f"""
select count(*) filter (where secret_version < %(version)s), count(*)
from (select secret_version from webhook_deliveries
      where application_id = %(application)s
        and {FACET_SQL} = any(%(pending)s::smallint[])
      limit %(most)s) as pending"""


@dataclass(frozen=True, slots=True)
class WithOlderSecret:
    count: int
    is_all: bool
    """False: more are pending than were looked at."""


def count_with_older_secret(cursor: Cursor[Any], application_id: UUID, version: int) -> WithOlderSecret:
    values = {
        "application": application_id,
        "version": version,
        "pending": matching_facets(status="pending"),
        "most": _MOST,
    }
    row = cursor.execute(_COUNT, values).fetchone()
    assert row is not None
    count, looked_at = row
    return WithOlderSecret(count, looked_at < _MOST)
