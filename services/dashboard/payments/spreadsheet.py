"""Payments as a table for spreadsheets (RFC 4180, UTF-8), page by page.

Each page is a short statement of its own, and its connection is given back before its rows go out: however slowly
somebody reads, no transaction stays open.
"""

import codecs
import csv
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from uuid import UUID

from services.dashboard.payments.listing import Page, Payment

INCOMPLETE = "INCOMPLETE: the export broke off here. Export again."
_BYTE_ORDER_MARK = codecs.BOM_UTF8
"""Without it Excel takes Arabic for something else."""
_MINOR_UNITS = Decimal(1000)
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", *"\uff1d\uff0b\uff0d\uff20")
"""How a cell begins that a spreadsheet would calculate; who sent it to the merchant may be anybody."""

_COLUMNS: dict[str, Callable[[Payment], str | None]] = {
    "uuid": lambda payment: str(payment.uuid),
    "reference": lambda payment: payment.reference.upper(),
    "merchant_reference": lambda payment: harmless(payment.merchant_reference),
    "amount": lambda payment: f"{payment.amount / _MINOR_UNITS:.3f}",
    "amount_minor": lambda payment: str(payment.amount),
    "currency": lambda payment: payment.currency,
    "status": lambda payment: payment.status,
    "method": lambda payment: payment.method,
    "created_at": lambda payment: _moment(payment.created_at),
    "updated_at": lambda payment: _moment(payment.updated_at),
    "paid_at": lambda payment: _moment(payment.paid_at) if payment.paid_at else None,
    "expires_at": lambda payment: _moment(payment.expires_at),
    "customer_external_id": lambda payment: harmless(payment.customer_external_id),
    "description": lambda payment: harmless(payment.description),
    "duplicate": lambda payment: "yes" if payment.is_duplicate else "no",
}

PageBefore = Callable[[UUID | None], Page]


def spreadsheet(page_before: PageBefore) -> Iterator[bytes]:
    """The first page is read at once, so that whoever asks still gets a proper answer where that fails.

    What fails later is raised after a last line that says so: the connection breaks, and where nobody notices that,
    the file tells.
    """
    return _written(page_before, page_before(None))


def _written(page_before: PageBefore, page: Page) -> Iterator[bytes]:
    yield _BYTE_ORDER_MARK + _lines(_COLUMNS)
    while True:
        yield _lines(*([cell(payment) for cell in _COLUMNS.values()] for payment in page.payments))
        if page.older is None:
            return
        try:
            page = page_before(page.older)
        except Exception:
            yield _lines([INCOMPLETE])
            raise


def harmless(text: str | None) -> str | None:
    return f"'{text}" if text is not None and text.startswith(_FORMULAS) else text


def _lines(*rows: Iterable[str | None]) -> bytes:
    out = StringIO(newline="")
    # All is quoted: a spreadsheet that separates by semicolons must find no formula behind one.
    csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return out.getvalue().encode()


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
