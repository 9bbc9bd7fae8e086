"""Lapsed rows: removes sessions, codes, throttles and wishes that have been over for longer than they are kept."""

from collections.abc import Callable
from dataclasses import dataclass

import psycopg
from prometheus_client import Counter
from psycopg import sql

from shared.platform.database.pool import Database
from shared.platform.settings import RetentionSettings

PURGED = Counter("mizan_expired_rows_purged", "Rows deleted some time after they expired", ["table"])

BATCH = 1000
# Between two batches others get their turn: at most 5,000 rows a second go from one table.
BUSY_PAUSE_S = 0.2
IDLE_PAUSE_S = 300.0


@dataclass(frozen=True, slots=True)
class ExpiringTable:
    table: str
    """With a column expires_at, and an index on it."""
    kept_days: Callable[[RetentionSettings], int]


EXPIRING_TABLES = (
    ExpiringTable("sessions", lambda kept: kept.sessions_days),
    ExpiringTable("one_time_codes", lambda kept: kept.codes_days),
    ExpiringTable("login_throttles", lambda kept: kept.throttles_days),
    ExpiringTable("code_challenges", lambda kept: kept.codes_days),
    ExpiringTable("checkout_limits", lambda kept: kept.throttles_days),
    ExpiringTable("resend_requests", lambda kept: kept.codes_days),
)

# Found by place (ctid), so that there is no join to plan badly. The batch is written out for the planner's sake: of
# an unknown limit it assumes a tenth of the table. Rows that somebody else holds are left to the next turn.
_PURGE = """
delete from {table} where ctid = any(array(
    select ctid from {table} where expires_at < mizan_now() - make_interval(days => %s)
    order by expires_at limit {batch} for update skip locked))"""


def purge_statement(table: str) -> sql.Composed:
    return sql.SQL(_PURGE).format(table=sql.Identifier(table), batch=sql.Literal(BATCH))


class ExpiredRowPurge:
    name = "purge-expired-rows"

    def __init__(self, database: Database, kept: RetentionSettings) -> None:
        self._database = database
        self._kept = kept

    def run_once(self) -> float:
        """A batch from each table. Soon again while one was full, otherwise in some minutes."""
        fullest, errors = 0, []
        for lapsing in EXPIRING_TABLES:
            try:
                fullest = max(fullest, self._remove_batch(lapsing))
            except psycopg.Error as error:  # the others still get their turn
                errors.append(error)
        if errors:
            raise errors[0]
        return BUSY_PAUSE_S if fullest == BATCH else IDLE_PAUSE_S

    def close(self) -> None:
        """The database belongs to the process."""

    def _remove_batch(self, lapsing: ExpiringTable) -> int:
        with self._database.cursor() as cursor:
            cursor.execute(purge_statement(lapsing.table), (lapsing.kept_days(self._kept),))
            removed = cursor.rowcount
        PURGED.labels(lapsing.table).inc(removed)
        return removed
