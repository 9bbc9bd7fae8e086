"""Explains a statement with the plan that the sessions of its service use, under their role and row-level security."""

import re
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import Cursor, sql

from shared.platform.database.pool import fetch_scalar
from tests.dashboard.world import ROLE
from tests.database_roles import url_as
from tests.postgres_statistics import read_plan

_MERCHANT = "select merchant_id from applications where id = %s"
_NAMED = re.compile(rb"%\((\w+)\)s")
_SETTINGS = """
select name, setting || coalesce(case when unit not in ('8kB', 'kB') then unit end, '') from pg_settings
where source in ('session', 'client') and context = 'user' and name <> 'client_encoding'"""


def explain(
    cursor: Cursor[Any], statement: bytes, values: Mapping[str, object], role: str = ROLE
) -> dict[str, Any]:
    """Prepare the statement and explain it. Only then is the plan generic, as plan_cache_mode requires.

    It runs in a session of the role, with the settings of this one. Rows must be committed.
    For the role of the owner there is no row-level security.
    The dashboard's merchant is in `values`, or is that of the application there.
    """
    settings = cursor.execute(_SETTINGS).fetchall()
    if role == ROLE:
        merchant = values.get("merchant") or fetch_scalar(cursor, _MERCHANT, (values["application"],))
        settings.append(("mizan.merchant_id", str(merchant)))
    names = list(dict.fromkeys(_NAMED.findall(statement)))
    numbered = _NAMED.sub(lambda found: b"$%d" % (names.index(found[1]) + 1), statement)
    literals = sql.SQL(", ").join(sql.Literal(values[name.decode()]) for name in names)
    explaining = sql.SQL("explain (analyze, buffers, format json) execute looked_at ({})")
    with psycopg.connect(url_as(role, cursor.connection.info.dsn), autocommit=True) as connection:
        for setting in settings:
            connection.execute("select set_config(%s, %s, false)", setting)
        connection.execute(b"prepare looked_at as " + numbered.replace(b"%%", b"%"))
        connection.execute(explaining.format(literals))  # the first run also reads the catalogs
        return read_plan(connection.execute(explaining.format(literals)))
