"""Expiry: cancels every unpaid intent when its time is over, by the database's clock, whatever happens to others."""

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
from shared.platform.database.pool import Database, DatabaseUnavailableError, fetch_scalar

EXPIRED = Counter("mizan_intents_expired", "Intents canceled because they expired")
LATENESS = Gauge("mizan_expiry_late_seconds", "How overdue the most overdue expiry is")
QUARANTINED = Gauge("mizan_expiry_quarantined_intents", "Expired intents that PostgreSQL refuses to cancel")

# Somebody may change expires_at in the database, which nobody tells us.
POLL_INTERVAL_S = 0.5
_LONGEST_PAUSE_S = 1.0
_SHORTEST_PAUSE_S = 0.01
# After a full batch, of the time it took, for each session that is at work for somebody who waits: a great wave of
# expiries leaves the API room for its creates, and is quick where nobody needs the machine but those who carry the
# wave on.
_PAUSE_PER_BUSY_SESSION = 0.25
_LONGEST_PAUSE_SHARE = 1.0
_COUNT_BUSY = """
select count(*) from pg_stat_activity
where state = 'active' and backend_type = 'client backend'
  and application_name <> all(array['mizan-scheduler', 'mizan-relay', 'mizan-webhooks'])"""

_log = logging.getLogger(__name__)


class IntentExpiry:
    name = "expiry"

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batch = EXPIRY_BATCH
        self._went_well = 0
        self._held_pause_s = _SHORTEST_PAUSE_S
        self._parked: Quarantine[UUID] = Quarantine("intents cannot be canceled", QUARANTINED)

    def run_once(self) -> float:
        """A batch of what is due. Wakes for the next due moment, and looks at least every second."""
        began, waiting = monotonic(), self._parked.waiting()
        due_in_s = self._look(waiting)
        # Entries that vacuum may not remove yet can make a look slow: then look less often.
        shortest_s = min(max(_SHORTEST_PAUSE_S, 5 * (monotonic() - began)), _LONGEST_PAUSE_S)
        if due_in_s > 0:
            self._parked.release_all_but(waiting)
            return max(min(due_in_s, POLL_INTERVAL_S), shortest_s)
        began, batch = monotonic(), self._batch
        expired = self._expire()
        EXPIRED.inc(expired)
        if expired == batch:
            return self._rest() * (monotonic() - began)
        if expired:
            self._held_pause_s = _SHORTEST_PAUSE_S
            return shortest_s
        # What is due and was not taken is held by somebody else: another scheduler, or a payment being made.
        self._held_pause_s = min(2 * self._held_pause_s, POLL_INTERVAL_S)
        return max(self._held_pause_s, shortest_s)

    def check(self) -> None:
        """For /readyz: raises while there are intents that cannot be canceled."""
        self._parked.check()

    def close(self) -> None:
        """The database belongs to the process."""

    def _look(self, waiting: Sequence[UUID]) -> float:
        """In how many seconds the next one is due, besides those that wait."""
        with self._database.cursor() as cursor:
            due_in_s = seconds_to_next_due(cursor, waiting)
        LATENESS.set(max(0, -due_in_s) if due_in_s is not None else 0)
        return POLL_INTERVAL_S if due_in_s is None else due_in_s

    def _rest(self) -> float:
        """Of the time that the batch took."""
        with self._database.cursor() as cursor:
            busy = int(fetch_scalar(cursor, _COUNT_BUSY))
        return min(_PAUSE_PER_BUSY_SESSION * busy, _LONGEST_PAUSE_SHARE)

    def _expire(self) -> int:
        """A batch that fails is tried in smaller steps, down to the one intent that is to blame."""
        try:
            expired = self._expire_one() if self._batch == 1 else self._expire_batch()
        except (psycopg.Error, DatabaseUnavailableError):
            self._batch, self._went_well = max(1, self._batch // 10), 0
            raise
        self._went_well += 1
        if self._went_well >= 10:
            self._batch, self._went_well = min(EXPIRY_BATCH, 10 * self._batch), 0
        return expired

    def _expire_batch(self) -> int:
        with self._database.cursor() as cursor:
            return expire_due(cursor, self._batch, self._parked.waiting())

    def _expire_one(self) -> int:
        intent = None
        try:
            with self._database.transaction() as connection:
                intent = lock_first_due(connection, self._parked.waiting())
                if intent is not None:
                    apply_trigger(connection, intent, IntentTrigger.EXPIRE)
        except psycopg.Error as error:
            if intent is None:
                raise
            _log.error("intent %s cannot be canceled: %s", intent, error)
            self._parked.park(intent, str(error).strip())
            return 0
        return int(intent is not None)
