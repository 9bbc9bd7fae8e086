"""How much is too much: counted in the database, so that all processes count together.

What is counted stands there only as a keyed hash.
"""

import hashlib
import hmac
from typing import Any
from uuid import UUID

from psycopg import Connection

from services.checkout.sentences import Refusal
from shared.db.first_value import first_value

INTENT_WINDOW_S = 600
PHONE_WINDOW_S = 3600
ATTEMPTS_PER_INTENT = 20
CODES_PER_INTENT = 10

_COUNT = """
insert into checkout_limits as known (key, count, expires_at)
values (%(key)s, 1, mizan_now() + make_interval(secs => %(window)s))
on conflict (key) do update set
    count = case when known.expires_at <= mizan_now() then 1 else known.count + 1 end,
    expires_at = case when known.expires_at <= mizan_now() then excluded.expires_at else known.expires_at end
returning count"""
_FORGET = "delete from checkout_limits where key = %s"


class TooMuchError(Exception):
    """The customer has to wait; nothing was done."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


class Limits:
    """Counts in the transaction of the caller, who holds the intent's lock: what is rolled back was not counted."""

    def __init__(self, key: bytes, codes_per_phone: int) -> None:
        self._key = key
        self._codes_per_phone = codes_per_phone

    def count_attempt(self, connection: Connection[Any], intent: UUID) -> None:
        refusal = Refusal.TOO_MANY_ATTEMPTS
        self._count(connection, f"attempts/{intent}", ATTEMPTS_PER_INTENT, INTENT_WINDOW_S, refusal)

    def count_code_sent(self, connection: Connection[Any], intent: UUID, phone: str) -> None:
        refusal = Refusal.TOO_MANY_CODES_SENT
        self._count(connection, f"codes/{intent}", CODES_PER_INTENT, INTENT_WINDOW_S, refusal)
        self._count(connection, f"phone/{phone}", self._codes_per_phone, PHONE_WINDOW_S, refusal)

    def forget_phone(self, connection: Connection[Any], phone: str) -> None:
        """Its owner has paid with it."""
        connection.execute(_FORGET, (self._hash(f"phone/{phone}"),))

    def _count(
        self, connection: Connection[Any], what: str, most: int, window_s: int, refusal: Refusal
    ) -> None:
        values = {"key": self._hash(what), "window": window_s}
        if int(first_value(connection.execute(_COUNT, values))) > most:
            raise TooMuchError(refusal)

    def _hash(self, what: str) -> bytes:
        return hmac.new(self._key, what.encode(), hashlib.sha256).digest()
