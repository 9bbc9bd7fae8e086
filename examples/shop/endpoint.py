"""How the webhook endpoint behaves: well, or as badly as one wants to see. For trying things out, not for copying."""

from enum import StrEnum
from threading import BoundedSemaphore, Event

from examples.shop.database import Database

_HANG_S = 15.0
"""Mizan waits for 10 (§6.6)."""
_MOST_HANGING = 4
"""Of the server's threads; more are turned away at once, so that the shop stays open."""


class Behaviour(StrEnum):
    GOOD = "good"
    FAIL = "fail"
    HANG = "hang"
    REDIRECT = "redirect"
    UNAUTHORIZED = "unauthorized"


class Endpoint:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._places = BoundedSemaphore(_MOST_HANGING)
        self._changed = Event()

    @property
    def behaviour(self) -> Behaviour:
        with self._database.reading() as connection:
            row = connection.execute("select value from notes where name = 'endpoint'").fetchone()
        return Behaviour.GOOD if row is None else Behaviour(row["value"])

    def behave(self, behaviour: Behaviour) -> None:
        with self._database.transaction() as connection:
            connection.execute("insert or replace into notes values ('endpoint', ?)", (behaviour,))
        self.let_go()

    def hang(self) -> None:
        """Until Mizan has given up, or somebody has changed the switch."""
        if self._places.acquire(blocking=False):
            try:
                self._changed.wait(_HANG_S)
            finally:
                self._places.release()

    def let_go(self) -> None:
        """Ends what hangs, now or when the shop stops."""
        changed, self._changed = self._changed, Event()
        changed.set()
