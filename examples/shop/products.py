"""What the shop sells. Prices are in minor units: 1000 are one dinar (§2)."""

from dataclasses import dataclass

CURRENCY = "LYD"
MOST_OF_ONE = 20


@dataclass(frozen=True, slots=True)
class Product:
    code: str
    """Names its picture and its words, too."""
    price: int


@dataclass(frozen=True, slots=True)
class Line:
    product: str
    quantity: int
    price: int
    """Of one, when it was ordered."""

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


class NothingChosenError(Exception):
    """An order needs at least one thing."""


def lines_chosen(quantities: dict[str, str]) -> tuple[Line, ...]:
    """From a form that anybody can send: prices are ours, and quantities are whole and bounded."""
    lines = tuple(
        Line(product.code, quantity, product.price)
        for product in PRODUCTS
        if (quantity := _whole(quantities.get(product.code, ""))) > 0
    )
    if not lines:
        raise NothingChosenError
    return lines


def _whole(text: str) -> int:
    """Also in Arabic-Indic digits, as a phone's keyboard may give them."""
    text = text.strip()
    return min(int(text), MOST_OF_ONE) if text.isdecimal() and len(text) <= 4 else 0
