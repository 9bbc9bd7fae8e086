"""Deletes expired sessions, codes, providers' pages, throttles, failed sign-ins and resend requests some days later."""

from collections.abc import Callable
from dataclasses import dataclass

import psycopg
from prometheus_client import Counter
from psycopg import sql

from shared.platform.database.pool import Database
from shared.platform.settings import RetentionSettings

PURGED = Counter("mizan_expired_rows_purged", "Rows deleted some time after they expired", ["table"])

BATCH = 1000
# Limits the purge to 5,000 rows a second from each table.
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
    ExpiringTable("failed_sign_ins", lambda kept: kept.failed_sign_ins_days),
    ExpiringTable("code_challenges", lambda kept: kept.codes_days),
    ExpiringTable("checkout_limits", lambda kept: kept.throttles_days),
    ExpiringTable("resend_requests", lambda kept: kept.codes_days),
    ExpiringTable("provider_pages", lambda kept: kept.codes_days),
)

# Rows are found by ctid, so there is no join to plan badly. The limit is a literal because the planner assumes a tenth
# of the table for an unknown one. Rows locked by others are left to the next run.
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
        """Delete one batch from each table. Run again soon after a full batch, otherwise in five minutes."""
        fullest, errors = 0, []
        for expiring in EXPIRING_TABLES:
            try:
                fullest = max(fullest, self._purge_batch(expiring))
            except psycopg.Error as error:  # the other tables are still purged
                errors.append(error)
        if errors:
            raise errors[0]
        return BUSY_PAUSE_S if fullest == BATCH else IDLE_PAUSE_S

    def close(self) -> None:
        """The process closes the database."""

    def _purge_batch(self, expiring: ExpiringTable) -> int:
        with self._database.cursor() as cursor:
            cursor.execute(purge_statement(expiring.table), (expiring.kept_days(self._kept),))
            removed = cursor.rowcount
        PURGED.labels(expiring.table).inc(removed)
        return removed
