"""Orders: placed once, and fulfilled once."""

import json
import sqlite3
from dataclasses import asdict, dataclass

from examples.shop.products import CURRENCY, Line

_MOST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Order:
    number: int
    """For people to say."""
    id: str
    amount: int
    currency: str
    lang: str
    lines: tuple[Line, ...]
    placed_at: float
    fulfilled_at: float | None
    fulfilled_by: str | None


def place_order(
    connection: sqlite3.Connection,
    order_id: str,
    lines: tuple[Line, ...],
    *,
    lang: str,
    at: float,
) -> None:
    connection.execute(
        "insert into orders (id, amount, currency, lang, lines, placed_at) values (?, ?, ?, ?, ?, ?)",
        (
            order_id,
            sum(line.amount for line in lines),
            CURRENCY,
            lang,
            json.dumps([asdict(line) for line in lines]),
            at,
        ),
    )


def find_order(connection: sqlite3.Connection, order_id: str) -> Order | None:
    row = connection.execute("select * from orders where id = ?", (order_id,)).fetchone()
    return None if row is None else _order(row)


def latest_orders(connection: sqlite3.Connection) -> list[Order]:
    rows = connection.execute("select * from orders order by number desc limit ?", (_MOST_SHOWN,))
    return [_order(row) for row in rows]


def fulfil(connection: sqlite3.Connection, order_id: str, reference: str, at: float) -> bool:
    """Whether it was this call that did it. However many find out that an order is paid, one hands out the coffee."""
    changed = connection.execute(
        "update orders set fulfilled_at = ?, fulfilled_by = ? where id = ? and fulfilled_at is null",
        (at, reference, order_id),
    )
    return changed.rowcount == 1


def _order(row: sqlite3.Row) -> Order:
    lines = tuple(Line(**line) for line in json.loads(row["lines"]))
    return Order(**{**dict(row), "lines": lines})
