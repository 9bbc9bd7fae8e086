"""The product's clock: mizan_now(), which the owner of the database can replace. It only moves forward."""

import time
from threading import Lock

import psycopg
from psycopg import sql

from chaos.history import ClockMoved, History

_PATIENCE_SECONDS = 60.0
_REPLACE = """
create or replace function mizan_now() returns timestamptz
language sql stable parallel safe return statement_timestamp() + make_interval(secs => {})"""


class ProductClock:
    """How far the product's clock is ahead of the machine's. Starts at 0 on a new database."""

    def __init__(self, database_url: str, history: History) -> None:
        self._url = database_url
        self._history = history
        self._lock = Lock()
        self.offset_s = 0.0

    def now(self) -> float:
        """Return the product's time, in seconds since 1970."""
        return time.time() + self.offset_s

    def move(self, seconds: float) -> None:
        """Move the clock forward. Raises psycopg.Error if PostgreSQL cannot be used for a minute."""
        with self._lock:
            began_at = time.time()
            deadline = began_at + _PATIENCE_SECONDS
            while True:
                try:
                    self._replace(self.offset_s + seconds)
                    break
                except psycopg.Error:
                    # The same offset again, so that it does not matter whether the first try worked.
                    if time.time() > deadline:
                        raise
                    time.sleep(0.5)
            self.offset_s += seconds
            self._history.add(ClockMoved(at=time.time(), began_at=began_at, seconds=seconds))

    def _replace(self, offset_s: float) -> None:
        with psycopg.connect(self._url, connect_timeout=3, autocommit=True) as connection:
            connection.execute("set lock_timeout = '5s'")
            connection.execute(sql.SQL(_REPLACE).format(sql.Literal(offset_s)))
