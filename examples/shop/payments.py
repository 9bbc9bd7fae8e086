"""Payments of orders, and when to check them. Each payment is one intent at Mizan, identified by our reference.

An order has a second payment if the first one expired.
"""

import secrets
import sqlite3
from dataclasses import dataclass
from enum import StrEnum

from .orders import Order

_FIRST_CHECK_DELAY_S = 10.0
"""How long the worker leaves a new payment to the request that added it."""


class PaymentStatus(StrEnum):
    """The four statuses of Mizan, and three of our own."""

    WANTED = "wanted"
    """Stored here; Mizan has not created the intent yet."""
    REFUSED = "refused"
    """Mizan refused the intent (422)."""
    DOUBTFUL = "doubtful"
    """Amount or currency differ from the order: a person must check it."""
    REQUIRES_PAYMENT_METHOD = "requires_payment_method"
    PROCESSING = "processing"
    SUCCEEDED = "succeeded"
    CANCELED = "canceled"

    @property
    def is_final(self) -> bool:
        return self in (PaymentStatus.REFUSED, PaymentStatus.DOUBTFUL, PaymentStatus.SUCCEEDED)


@dataclass(frozen=True, slots=True)
class Payment:
    reference: str
    order_id: str
    amount: int
    currency: str
    uuid: str | None
    status: PaymentStatus
    checkout_url: str | None
    expires_at: float | None
    canceled_at: float | None
    asked: int
    ask_at: float | None


def add_payment(connection: sqlite3.Connection, order: Order, at: float) -> Payment:
    """Store a payment before Mizan is called: after a crash, the same reference yields the same intent."""
    # Each payment of an order needs its own reference, which nobody can guess.
    reference = f"order-{order.number}-{secrets.token_hex(6)}"
    connection.execute(
        "insert into payments (reference, order_id, amount, currency, status, ask_at) values (?, ?, ?, ?, ?, ?)",
        (reference, order.id, order.amount, order.currency, PaymentStatus.WANTED, at + _FIRST_CHECK_DELAY_S),
    )
    return find_payment(connection, reference)


def find_payment(connection: sqlite3.Connection, reference: str) -> Payment:
    found = find_payment_or_none(connection, reference)
    assert found is not None
    return found


def find_payment_or_none(connection: sqlite3.Connection, reference: str) -> Payment | None:
    row = connection.execute("select * from payments where reference = ?", (reference,)).fetchone()
    return None if row is None else _payment(row)


def find_payment_of_intent(connection: sqlite3.Connection, uuid: str) -> Payment | None:
    row = connection.execute("select * from payments where uuid = ?", (uuid,)).fetchone()
    return None if row is None else _payment(row)


def list_payments(connection: sqlite3.Connection, order_id: str) -> list[Payment]:
    """Return the payments of an order, the latest last."""
    rows = connection.execute("select * from payments where order_id = ? order by rowid", (order_id,))
    return [_payment(row) for row in rows]


def due_payments(connection: sqlite3.Connection, now: float) -> list[Payment]:
    rows = connection.execute("select * from payments where ask_at <= ? order by ask_at limit 20", (now,))
    return [_payment(row) for row in rows]


def reschedule_check(connection: sqlite3.Connection, reference: str, ask_at: float | None) -> None:
    connection.execute(
        "update payments set asked = asked + 1, ask_at = ? where reference = ?", (ask_at, reference)
    )


def set_status(
    connection: sqlite3.Connection, reference: str, status: PaymentStatus, ask_at: float | None
) -> None:
    connection.execute(
        "update payments set status = ?, asked = 0, ask_at = ? where reference = ?",
        (status, ask_at, reference),
    )


def set_canceled(connection: sqlite3.Connection, reference: str, at: float, ask_at: float | None) -> None:
    set_status(connection, reference, PaymentStatus.CANCELED, ask_at)
    connection.execute("update payments set canceled_at = ? where reference = ?", (at, reference))


def set_intent(
    connection: sqlite3.Connection, reference: str, uuid: str, checkout_url: str, expires_at: float | None
) -> None:
    connection.execute(
        "update payments set uuid = ?, checkout_url = ?, expires_at = ? where reference = ?",
        (uuid, checkout_url, expires_at, reference),
    )


def _payment(row: sqlite3.Row) -> Payment:
    return Payment(**{**dict(row), "status": PaymentStatus(row["status"])})


_FIRST_RETRY_DELAY_S, _MAX_RETRY_DELAY_S = 1.0, 300.0
_AFTER_EXPIRY_S = 5.0
"""Mizan cancels at expires_at by its own clock, which may differ from ours."""
_UNPAID_CHECK_DELAY_S, _MAX_UNPAID_CHECK_DELAY_S = 30.0, 3600.0
_LATE_CHECK_DELAYS_S = (3600.0, 86_400.0, 7 * 86_400.0)
"""A payment can be verified after the intent was canceled, and its webhook can fail."""


def retry_delay(asked: int) -> float:
    """Return the delay after `asked` failed checks. It doubles each time, so that Mizan can recover."""
    return min(_FIRST_RETRY_DELAY_S * 2.0 ** min(asked, 20), _MAX_RETRY_DELAY_S)


def next_check(status: PaymentStatus, expires_at: float | None, asked: int, now: float) -> float | None:
    """Return when to check a payment next, or None if its status is final.

    Webhooks can fail for good, so a payment that is still unpaid after `expires_at` is checked again.
    """
    if status.is_final:
        return None
    if expires_at is not None and now < expires_at:
        return expires_at + _AFTER_EXPIRY_S
    return now + min(_UNPAID_CHECK_DELAY_S * 2.0 ** min(asked, 10), _MAX_UNPAID_CHECK_DELAY_S)


def next_late_check(canceled_at: float, now: float) -> float | None:
    """Return when to check a canceled payment for a late success, or None after the last check.

    The times depend on `canceled_at` alone, so other checks do not postpone them.
    """
    return next((canceled_at + pause for pause in _LATE_CHECK_DELAYS_S if canceled_at + pause > now), None)
