"""Explains a statement of the dashboard, with the plan that its sessions use."""

import re
from collections.abc import Mapping
from typing import Any

from psycopg import Cursor, sql

from tests.postgres_statistics import read_plan

_NAMED = re.compile(rb"%\((\w+)\)s")


def explain(cursor: Cursor[Any], statement: bytes, values: Mapping[str, object]) -> dict[str, Any]:
    """Prepare the statement and explain it. Only then is the plan generic, as plan_cache_mode requires."""
    names = list(dict.fromkeys(_NAMED.findall(statement)))
    numbered = _NAMED.sub(lambda found: b"$%d" % (names.index(found[1]) + 1), statement)
    cursor.execute(b"prepare looked_at as " + numbered.replace(b"%%", b"%"))
    try:
        literals = sql.SQL(", ").join(sql.Literal(values[name.decode()]) for name in names)
        explaining = sql.SQL("explain (analyze, buffers, format json) execute looked_at ({})")
        return read_plan(cursor.execute(explaining.format(literals)))
    finally:
        cursor.execute("deallocate looked_at")
