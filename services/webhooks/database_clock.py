"""The database's clock, read without asking it each time: what is due is decided by it, not by this machine's."""

from time import monotonic

from shared.platform.database.first_value import first_value
from shared.platform.database.pool import Database

ASK_AGAIN_S = 2.0


class DatabaseClock:
    """Never ahead of the database: the way of the answer makes it a moment late. Threads may share it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ahead = 0.0
        """Of the monotonic clock."""
        self._asked_at = float("-inf")

    def now(self) -> float:
        """Seconds since 1970."""
        if monotonic() - self._asked_at > ASK_AGAIN_S:
            with self._database.cursor() as cursor:
                told = float(first_value(cursor.execute("select extract(epoch from mizan_now())::float8")))
            self._ahead, self._asked_at = told - monotonic(), monotonic()
        return monotonic() + self._ahead
