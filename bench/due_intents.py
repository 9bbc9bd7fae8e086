"""Many intents that fall due at one moment."""

import psycopg

DUE = 100_000

_FILL = """
insert into payment_intents (application_id, merchant_reference, reference, amount, currency, expires_at, description,
                             customer_external_id, return_url, metadata)
select uuidv7(), %(wave)s || n, %(wave)s || n, 25000, 'LYD', mizan_now() + make_interval(secs => %(in_s)s),
       'Two coffees and a kilo of dates', 'customer-1', 'https://shop.example/orders/1',
       '{"order":"1","branch":"tripoli"}'
from generate_series(1, %(count)s) as n
"""


def fill_due(connection: psycopg.Connection, prefix: str, *, in_s: float = 0, count: int = DUE) -> None:
    """`prefix` begins their references."""
    connection.execute(_FILL, {"wave": prefix, "in_s": in_s, "count": count})
    connection.execute("checkpoint")
