"""Inserts many intents that expire at one moment or one after another."""

from collections.abc import Sequence
from uuid import UUID

import psycopg

DUE = 100_000

_FILL = """
insert into payment_intents (application_id, merchant_reference, reference, amount, currency, expires_at, description,
                             customer_external_id, return_url, metadata)
select coalesce((%(applications)s::uuid[])[1 + n %% greatest(1, cardinality(%(applications)s::uuid[]))], uuidv7()),
       %(wave)s || n, %(wave)s || n, 25000, 'LYD',
       mizan_now() + make_interval(secs => %(in_s)s + %(over_s)s::float8 * n / %(count)s),
       'Two coffees and a kilo of dates', 'customer-1', 'https://shop.example/orders/1',
       '{"order":"1","branch":"tripoli"}'
from generate_series(1, %(count)s) as n
"""


def fill_due(
    connection: psycopg.Connection,
    prefix: str,
    *,
    in_s: float = 0,
    over_s: float = 0,
    count: int = DUE,
    applications: Sequence[UUID] = (),
) -> None:
    """Insert intents with references that start with `prefix`, in turn for these applications, or for unknown ones."""
    connection.execute(
        _FILL,
        {"wave": prefix, "in_s": in_s, "over_s": over_s, "count": count, "applications": list(applications)},
    )
    connection.execute("checkpoint")
