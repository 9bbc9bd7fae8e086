"""What a customer sees on a page of the checkout, and the hidden fields of its forms. Pure."""

import re
from enum import StrEnum
from html import unescape

_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


class PageKind(StrEnum):
    PAID = "paid"
    DECLINED = "declined"
    """The payment form, with a note that the last attempt failed."""
    CODE = "code"
    CONFIRMING = "confirming"
    EXPIRED = "expired"
    ERROR = "error"
    FORM = "form"
    """The payment form without such a note."""


_MARKS = (
    ('<dl class="slip">', PageKind.PAID),
    ("data-state-url=", PageKind.CONFIRMING),
    ('name="attempt"', PageKind.CODE),
    ("This payment link has expired", PageKind.EXPIRED),
    ("Your payment did not go through", PageKind.DECLINED),
    ('name="method"', PageKind.FORM),
)
_UNPROCESSABLE = 422


def page_kind(status: int, page: str) -> PageKind:
    """Return what an English page shows. A form with errors is the form again."""
    if status >= 400 and status != _UNPROCESSABLE:
        return PageKind.ERROR
    return next((kind for mark, kind in _MARKS if mark in page), PageKind.ERROR)


def hidden_fields(page: str) -> dict[str, str]:
    """Return the hidden fields of all forms of the page. Those with the same name have the same value."""
    return {name: unescape(value) for name, value in _HIDDEN.findall(page)}
