"""Payments of orders: each is one intent of Mizan's, known by a reference of ours; an order may need more than one."""

import secrets
import sqlite3
from dataclasses import dataclass
from enum import StrEnum

from examples.shop.orders import Order

_HEAD_START_S = 10.0
"""For the request that has just written a payment down; if it dies, the worker takes over."""


class Status(StrEnum):
    """Mizan's four (§3), and what only we know of."""

    WANTED = "wanted"
    """Written down here; Mizan has not answered yet."""
    REFUSED = "refused"
    """Mizan will not have it (422)."""
    DOUBTFUL = "doubtful"
    """Amount or currency are not the order's: a person has to look."""
    REQUIRES_PAYMENT_METHOD = "requires_payment_method"
    PROCESSING = "processing"
    SUCCEEDED = "succeeded"
    CANCELED = "canceled"

    @property
    def is_over(self) -> bool:
        return self in (Status.REFUSED, Status.DOUBTFUL, Status.SUCCEEDED)


@dataclass(frozen=True, slots=True)
class Payment:
    reference: str
    order_id: str
    amount: int
    currency: str
    uuid: str | None
    status: Status
    checkout_url: str | None
    expires_at: float | None
    canceled_at: float | None
    asked: int
    ask_at: float | None


def add_payment(connection: sqlite3.Connection, order: Order, at: float) -> Payment:
    """Before Mizan hears of it (§4.1): if we are killed in between, the same reference finds the same intent."""
    # A second payment of one order needs a reference of its own (§4.1, rule 6), and nobody should guess the next.
    reference = f"order-{order.number}-{secrets.token_hex(6)}"
    connection.execute(
        "insert into payments (reference, order_id, amount, currency, status, ask_at) values (?, ?, ?, ?, ?, ?)",
        (reference, order.id, order.amount, order.currency, Status.WANTED, at + _HEAD_START_S),
    )
    return find_payment(connection, reference)


def find_payment(connection: sqlite3.Connection, reference: str) -> Payment:
    found = known_payment(connection, reference)
    assert found is not None
    return found


def known_payment(connection: sqlite3.Connection, reference: str) -> Payment | None:
    row = connection.execute("select * from payments where reference = ?", (reference,)).fetchone()
    return None if row is None else _payment(row)


def payment_of_intent(connection: sqlite3.Connection, uuid: str) -> Payment | None:
    row = connection.execute("select * from payments where uuid = ?", (uuid,)).fetchone()
    return None if row is None else _payment(row)


def payments_of(connection: sqlite3.Connection, order_id: str) -> list[Payment]:
    """The latest last."""
    rows = connection.execute("select * from payments where order_id = ? order by rowid", (order_id,))
    return [_payment(row) for row in rows]


def due_payments(connection: sqlite3.Connection, now: float) -> list[Payment]:
    rows = connection.execute("select * from payments where ask_at <= ? order by ask_at limit 20", (now,))
    return [_payment(row) for row in rows]


def ask_later(connection: sqlite3.Connection, reference: str, ask_at: float | None) -> None:
    connection.execute(
        "update payments set asked = asked + 1, ask_at = ? where reference = ?", (ask_at, reference)
    )


def set_status(connection: sqlite3.Connection, reference: str, status: Status, ask_at: float | None) -> None:
    connection.execute(
        "update payments set status = ?, asked = 0, ask_at = ? where reference = ?",
        (status, ask_at, reference),
    )


def set_canceled(connection: sqlite3.Connection, reference: str, at: float, ask_at: float | None) -> None:
    set_status(connection, reference, Status.CANCELED, ask_at)
    connection.execute("update payments set canceled_at = ? where reference = ?", (at, reference))


def set_intent(
    connection: sqlite3.Connection, reference: str, uuid: str, checkout_url: str, expires_at: float | None
) -> None:
    connection.execute(
        "update payments set uuid = ?, checkout_url = ?, expires_at = ? where reference = ?",
        (uuid, checkout_url, expires_at, reference),
    )


def _payment(row: sqlite3.Row) -> Payment:
    return Payment(**{**dict(row), "status": Status(row["status"])})
