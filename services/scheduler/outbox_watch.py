"""Measures the outbox for operators: how many rows wait, and how old the oldest is."""

from prometheus_client import Gauge

from shared.platform.database.pool import Database

WAITING = Gauge("mizan_outbox_rows", "Rows in the outbox (counted up to 100,000)")
AGE = Gauge("mizan_outbox_oldest_age_seconds", "Age of the oldest row in the outbox")

_EVERY_S = 5.0
_MEASURE = """
select (select count(*) from (select from outbox limit 100000) as counted),
       coalesce((select extract(epoch from clock_timestamp() - created_at) from outbox order by id limit 1), 0)
"""


class OutboxWatch:
    name = "outbox-watch"

    def __init__(self, database: Database) -> None:
        self._database = database

    def turn(self) -> float:
        with self._database.transaction() as connection:
            row = connection.execute(_MEASURE).fetchone()
        assert row is not None
        WAITING.set(row[0])
        AGE.set(float(row[1]))
        return _EVERY_S

    def close(self) -> None:
        """The database belongs to the process."""
