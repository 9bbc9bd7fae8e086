"""Runs a statement that looks for faults, and brings home the first few of each check."""

from collections.abc import Mapping
from typing import Any

from psycopg import Connection

from mizan.audit.checks import CHECKS, MOST_FINDINGS, Finding, Found

_COUNTED = """
select name, id, detail, total
from (select name, id, detail, count(*) over (partition by name) as total,
             row_number() over (partition by name order by id) as place
      from ({0}) as faults where name is not null) as counted
where place <= {1}
order by name, place"""


def look_for(connection: Connection[Any], faults: str, values: Mapping[str, object] | None = None) -> Found:
    """`faults` returns name (of the check, null where all is well), id and detail, all as text."""
    statement = _COUNTED.format(faults, MOST_FINDINGS)
    rows = connection.execute(statement.encode(), values).fetchall()
    return Found(
        [Finding(CHECKS[name], id_, detail) for name, id_, detail, _ in rows],
        {name: total for name, _, _, total in rows},
    )
