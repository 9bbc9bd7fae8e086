"""Products and orders. An order is placed and fulfilled once. Prices are in minor units: 1000 are one dinar."""

import json
import sqlite3
from dataclasses import asdict, dataclass

CURRENCY = "LYD"
MAX_QUANTITY = 20


@dataclass(frozen=True, slots=True)
class Product:
    code: str
    """Also identifies the picture and the texts of the product."""
    price: int


@dataclass(frozen=True, slots=True)
class Line:
    product: str
    quantity: int
    price: int
    """The price of one, at the time of the order."""

    @property
    def amount(self) -> int:
        return self.quantity * self.price


PRODUCTS = (
    Product("coffee", 4_000),
    Product("tea", 3_500),
    Product("maqrood", 6_500),
    Product("ghraiba", 5_750),
    Product("dates", 12_000),
    Product("beans", 38_000),
)


class EmptyOrderError(Exception):
    """No product was chosen."""


def parse_lines(quantities: dict[str, str]) -> tuple[Line, ...]:
    """Return the order lines of a form. Prices come from us, and quantities are bounded.

    Raises EmptyOrderError if nothing was chosen.
    """
    lines = tuple(
        Line(product.code, quantity, product.price)
        for product in PRODUCTS
        if (quantity := _parse_quantity(quantities.get(product.code, ""))) > 0
    )
    if not lines:
        raise EmptyOrderError
    return lines


def _parse_quantity(text: str) -> int:
    """Return the quantity, also from Arabic-Indic digits; 0 if it is not a number."""
    text = text.strip()
    return min(int(text), MAX_QUANTITY) if text.isdecimal() and len(text) <= 4 else 0


_MAX_ORDERS_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Order:
    number: int
    """The number that people see."""
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
    rows = connection.execute("select * from orders order by number desc limit ?", (_MAX_ORDERS_SHOWN,))
    return [_order(row) for row in rows]


def fulfil_order(connection: sqlite3.Connection, order_id: str, reference: str, at: float) -> bool:
    """Mark the order as fulfilled. Return False if it was fulfilled before, so that it is handed out only once."""
    changed = connection.execute(
        "update orders set fulfilled_at = ?, fulfilled_by = ? where id = ? and fulfilled_at is null",
        (at, reference, order_id),
    )
    return changed.rowcount == 1


def _order(row: sqlite3.Row) -> Order:
    lines = tuple(Line(**line) for line in json.loads(row["lines"]))
    return Order(**{**dict(row), "lines": lines})
