"""Limits on attempts and codes, counted in the database for all processes together.

Phone numbers and intents are stored only as keyed hashes.
"""

import hashlib
import hmac
from enum import StrEnum
from math import ceil
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.platform.client_network import client_network

INTENT_WINDOW_S = 600
PHONE_WINDOW_S = 3600
WRONG_CODES_WINDOW_S = 24 * 3600
ADDRESS_WINDOW_S = 3600
ATTEMPTS_PER_INTENT = 20
CODES_PER_INTENT = 10

_COUNT = """
insert into checkout_limits as known (key, count, expires_at)
values (%(key)s, 1, mizan_now() + make_interval(secs => %(window)s))
on conflict (key) do update set
    count = case when known.expires_at <= mizan_now() then 1 else known.count + 1 end,
    expires_at = case when known.expires_at <= mizan_now() then excluded.expires_at else known.expires_at end
returning count, extract(epoch from expires_at - mizan_now())::float8"""
_REFUND = "update checkout_limits set count = greatest(0, count - 1) where key = %s"
_FIND_COUNT = """
select count, extract(epoch from expires_at - mizan_now())::float8
from checkout_limits where key = %s and expires_at > mizan_now()"""
_RESET = "delete from checkout_limits where key = %s"


class Refusal(StrEnum):
    """Why the checkout itself refuses a step for now. pages/labels.py has a text for each."""

    TOO_MANY_ATTEMPTS = "too_many_attempts"
    TOO_MANY_CODES_SENT = "too_many_codes_sent"
    TOO_MANY_CODES_TRIED = "too_many_codes_tried"
    TOO_MANY_FAILURES = "too_many_failures"
    SEND_AGAIN_TOO_SOON = "send_again_too_soon"
    CODE_NOT_SENT = "code_not_sent"


class LimitExceededError(Exception):
    """The customer has to wait. Nothing was done."""

    def __init__(self, refusal: Refusal, retry_after_s: float) -> None:
        super().__init__(refusal)
        self.refusal = refusal
        self.retry_after_s = max(1, ceil(retry_after_s))


class PaymentLimits:
    """Counts in the caller's transaction, which has locked the intent. A rollback undoes the count.

    The count methods raise LimitExceededError.
    """

    def __init__(
        self,
        key: bytes,
        codes_per_phone: int,
        failures_per_address: int,
        *,
        test_application: UUID | None = None,
    ) -> None:
        self._key = key
        self._test_application = test_application
        self._codes_per_phone = codes_per_phone
        self._failures_per_address = failures_per_address
        # Per day, twice as many as codes may be sent per hour.
        self._wrong_codes_per_phone = 2 * codes_per_phone

    def within_test_application(self, application: UUID) -> "PaymentLimits":
        """Return limits that count only this test application.

        All test applications use the same few phones. And nobody may use up, or reset, the limits of somebody's phone
        in the sandbox, which has no code to guess.
        """
        return PaymentLimits(
            self._key, self._codes_per_phone, self._failures_per_address, test_application=application
        )

    def count_attempt(self, connection: Connection[Any], intent: UUID) -> None:
        refusal = Refusal.TOO_MANY_ATTEMPTS
        self._count(connection, f"attempts/{intent}", ATTEMPTS_PER_INTENT, INTENT_WINDOW_S, refusal)

    def count_code_sent(self, connection: Connection[Any], intent: UUID, phone: str | None) -> None:
        """Count a code before it is sent. Of a card only the bank knows the phone: None."""
        refusal = Refusal.TOO_MANY_CODES_SENT
        if phone is not None:
            self._check(connection, _tried(phone), self._wrong_codes_per_phone, Refusal.TOO_MANY_CODES_TRIED)
        self._count(connection, f"codes/{intent}", CODES_PER_INTENT, INTENT_WINDOW_S, refusal)
        if phone is not None:
            self._count(connection, f"phone/{phone}", self._codes_per_phone, PHONE_WINDOW_S, refusal)

    def refund_code(self, connection: Connection[Any], intent: UUID, phone: str | None) -> None:
        """Undo the count of a code that was not sent."""
        connection.execute(_REFUND, (self._hash(f"codes/{intent}"),))
        if phone is not None:
            connection.execute(_REFUND, (self._hash(f"phone/{phone}"),))

    def count_code_tried(self, connection: Connection[Any], phone: str) -> None:
        """Count a code before it is sent to the provider, over all attempts of a day.

        So nobody can guess a short code by opening many payments at once. It counts as wrong until it is refunded.
        """
        refusal = Refusal.TOO_MANY_CODES_TRIED
        self._count(connection, _tried(phone), self._wrong_codes_per_phone, WRONG_CODES_WINDOW_S, refusal)

    def refund_code_tried(self, connection: Connection[Any], phone: str) -> None:
        """Undo the count of a code that was not wrong, or did not reach the provider."""
        connection.execute(_REFUND, (self._hash(_tried(phone)),))

    def forget_phone(self, connection: Connection[Any], phone: str) -> None:
        """Reset the limits of a phone whose owner has paid with it."""
        for what in (f"phone/{phone}", _tried(phone)):
            connection.execute(_RESET, (self._hash(what),))

    def check_address(self, connection: Connection[Any], address: str) -> None:
        """Raise LimitExceededError if this client failed too often.

        Thousands of customers can share the address of their carrier. So what counts is failed attempts, wrong codes
        and codes that were sent and not used to pay, never a payment. Checked before and counted after the call of a
        provider, a limit can be exceeded by as many requests as run at the same moment.
        """
        self._check(connection, _failures(address), self._failures_per_address, Refusal.TOO_MANY_FAILURES)

    def count_failure(self, connection: Connection[Any], address: str) -> None:
        values = {"key": self._hash(_failures(address)), "window": ADDRESS_WINDOW_S}
        connection.execute(_COUNT, values)

    def refund_failure(self, connection: Connection[Any], address: str) -> None:
        """Undo the count of a code that was not sent, or that was used to pay."""
        connection.execute(_REFUND, (self._hash(_failures(address)),))

    def _count(
        self, connection: Connection[Any], what: str, most: int, window_s: int, refusal: Refusal
    ) -> None:
        values = {"key": self._hash(what), "window": window_s}
        row = connection.execute(_COUNT, values).fetchone()
        assert row is not None
        if row[0] > most:
            raise LimitExceededError(refusal, row[1])

    def _check(self, connection: Connection[Any], what: str, most: int, refusal: Refusal) -> None:
        """Raise LimitExceededError if the limit is reached, without counting."""
        row = connection.execute(_FIND_COUNT, (self._hash(what),)).fetchone()
        if row is not None and row[0] >= most:
            raise LimitExceededError(refusal, row[1])

    def _hash(self, what: str) -> bytes:
        scope = "" if self._test_application is None else f"test/{self._test_application}/"
        return hmac.new(self._key, f"{scope}{what}".encode(), hashlib.sha256).digest()


def _failures(address: str) -> str:
    return f"failures/{client_network(address)}"


def _tried(phone: str) -> str:
    return f"codes tried/{phone}"
