"""Cancels unpaid intents when they expire, by the database's clock."""

import logging
from collections.abc import Sequence
from time import monotonic
from uuid import UUID

import psycopg
from prometheus_client import Counter, Gauge

from services.scheduler.quarantine import Quarantine
from shared.domain.intents.states import IntentTrigger
from shared.domain.intents.store import (
    EXPIRY_BATCH,
    apply_trigger,
    expire_due,
    lock_first_due,
    seconds_to_next_due,
)
from shared.platform.batch_size import BatchSize
from shared.platform.database.pool import Database, DatabaseUnavailableError, fetch_scalar

EXPIRED = Counter("mizan_intents_expired", "Intents canceled because they expired")
LATENESS = Gauge("mizan_expiry_late_seconds", "How overdue the most overdue expiry is")
QUARANTINED = Gauge("mizan_expiry_quarantined_intents", "Expired intents that PostgreSQL refuses to cancel")

# Polling also finds an expires_at that was changed in the database.
POLL_INTERVAL_S = 0.5
_LONGEST_PAUSE_S = 1.0
_SHORTEST_PAUSE_S = 0.01
# The pause after a full batch, as a share of the time the batch took: so much for each busy database session of the API
# and the pages. A large wave of expiries leaves them room, and goes fast when nobody else needs the machine.
_PAUSE_PER_BUSY_SESSION = 0.25
_LONGEST_PAUSE_SHARE = 1.0
_LOOK_EVERY_S = 0.2
# PostgreSQL hides from a role what the sessions of other roles do, but not who holds locks: every transaction holds one
# on itself.
_COUNT_BUSY = """
select count(*) from pg_stat_activity as a
where usesysid is not null and application_name <> all(array['mizan-scheduler', 'mizan-relay', 'mizan-webhooks'])
  and exists (select from pg_locks as l where l.pid = a.pid and l.locktype = 'virtualxid')"""

_log = logging.getLogger(__name__)


class IntentExpiry:
    name = "expiry"

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batch_size = BatchSize(EXPIRY_BATCH)
        self._locked_pause_s = self._shortest_pause_s = _SHORTEST_PAUSE_S
        self._pause_share = 0.0
        self._look_again_at = 0.0
        """While many intents expire, what is due and who else is busy is looked up only now and then."""
        self._quarantine: Quarantine[UUID] = Quarantine("intents cannot be canceled", QUARANTINED)

    def run_once(self) -> float:
        """Cancel one batch of due intents. Return the pause until the next one is due, half a second at most."""
        if monotonic() >= self._look_again_at:
            began, quarantined = monotonic(), self._quarantine.held()
            due_in_s = self._seconds_to_next(quarantined)
            # Dead index entries that vacuum may not remove yet make polling slow: then poll less often.
            self._shortest_pause_s = min(max(_SHORTEST_PAUSE_S, 5 * (monotonic() - began)), _LONGEST_PAUSE_S)
            if due_in_s > 0:
                self._quarantine.release_all_except(quarantined)
                return max(min(due_in_s, POLL_INTERVAL_S), self._shortest_pause_s)
        began, batch = monotonic(), self._batch_size.current
        expired = self._expire()
        EXPIRED.inc(expired)
        if expired == batch:
            if monotonic() >= self._look_again_at:
                self._pause_share = self._choose_pause_share()
                self._look_again_at = monotonic() + _LOOK_EVERY_S
            return self._pause_share * (monotonic() - began)
        self._look_again_at = 0.0
        if expired:
            self._locked_pause_s = _SHORTEST_PAUSE_S
            return self._shortest_pause_s
        # Due intents that were not taken are locked: by another scheduler, or by a payment.
        self._locked_pause_s = min(2 * self._locked_pause_s, POLL_INTERVAL_S)
        return max(self._locked_pause_s, self._shortest_pause_s)

    def check(self) -> None:
        """For /readyz: raises while there are intents that cannot be canceled."""
        self._quarantine.check()

    def close(self) -> None:
        """The process closes the database."""

    def _seconds_to_next(self, quarantined: Sequence[UUID]) -> float:
        """Return the seconds until the next intent is due, without the quarantined ones."""
        with self._database.cursor() as cursor:
            due_in_s = seconds_to_next_due(cursor, quarantined)
        LATENESS.set(max(0, -due_in_s) if due_in_s is not None else 0)
        return POLL_INTERVAL_S if due_in_s is None else due_in_s

    def _choose_pause_share(self) -> float:
        """Return how long to pause before the next batch, as a share of the time the last one took."""
        with self._database.cursor() as cursor:
            busy = int(fetch_scalar(cursor, _COUNT_BUSY))
        return min(_PAUSE_PER_BUSY_SESSION * busy, _LONGEST_PAUSE_SHARE)

    def _expire(self) -> int:
        """Cancel a batch. After a failure the next batches are smaller, down to the single intent that fails."""
        batch = self._batch_size.current
        try:
            expired = self._expire_one() if batch == 1 else self._expire_batch(batch)
        except (psycopg.Error, DatabaseUnavailableError):
            self._batch_size.shrink(batch)
            raise
        self._batch_size.count_success()
        return expired

    def _expire_batch(self, size: int) -> int:
        with self._database.cursor() as cursor:
            return expire_due(cursor, size, self._quarantine.held())

    def _expire_one(self) -> int:
        intent = None
        try:
            with self._database.transaction() as connection:
                intent = lock_first_due(connection, self._quarantine.held())
                if intent is not None:
                    apply_trigger(connection, intent, IntentTrigger.EXPIRE)
        except psycopg.Error as error:
            if intent is None:
                raise
            _log.error("intent %s cannot be canceled: %s", intent, error)
            self._quarantine.add(intent, str(error).strip())
            return 0
        return int(intent is not None)
