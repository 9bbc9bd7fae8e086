"""Expiry: cancels every unpaid intent when its time is over, by the database's clock."""

from time import monotonic

from prometheus_client import Counter, Gauge

from shared.db.pool import Database
from shared.intents.store import EXPIRY_BATCH, expire_due, seconds_to_next_due

EXPIRED = Counter("mizan_intents_expired", "Intents canceled because their time was over")
LATENESS = Gauge("mizan_expiry_late_seconds", "How long the intent that is most overdue has been due")

# Somebody may change expires_at in the database, which nobody tells us.
LOOK_AGAIN_S = 0.5
_LONGEST_PAUSE_S = 1.0
_HELD_PAUSE_S = 0.05
# After a full batch, of the time it took: a great wave of expiries leaves the API room for its creates.
_REST = 0.4


class Expiry:
    name = "expiry"

    def __init__(self, database: Database) -> None:
        self._database = database

    def turn(self) -> float:
        """A batch of what is due. Wakes for the next due moment, and looks at least every second."""
        began = monotonic()
        with self._database.cursor() as cursor:
            due_in_s = seconds_to_next_due(cursor)
            if due_in_s is None or due_in_s > 0:
                LATENESS.set(0)
                pause = LOOK_AGAIN_S if due_in_s is None else min(due_in_s, LOOK_AGAIN_S)
                # Entries that vacuum may not remove yet can make a look slow: then look less often.
                return min(max(pause, 5 * (monotonic() - began)), _LONGEST_PAUSE_S)
            LATENESS.set(-due_in_s)
            expired = expire_due(cursor)
        EXPIRED.inc(expired)
        if expired == EXPIRY_BATCH:
            return _REST * (monotonic() - began)
        # What is due and was not taken is held by somebody else: another scheduler, or a payment being made.
        return 0 if expired else _HELD_PAUSE_S

    def close(self) -> None:
        """The database belongs to the process."""
