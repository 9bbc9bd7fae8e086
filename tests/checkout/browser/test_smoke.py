"""Opens each page of the checkout once. Console errors and failed requests fail the test (tests/browser.py)."""

import re

from playwright.sync_api import expect

from tests.checkout.browser.all_pages import EXPECTED, every_page
from tests.checkout.browser.page_states import ready
from tests.checkout.browser.shopper import Shoppers
from tests.checkout.world import CheckoutWorld

FIELDS = {
    "card": ("Card number", "Expiry date", "Security code"),
    "sadad": ("Phone number", "Birth year"),
    "adfali": ("Phone number",),
}
_LATIN = re.compile(r"[A-Za-z]+")
_REFERENCE = re.compile(r"\b[A-Z0-9]{10}\b")
_ALLOWED_IN_ARABIC = {"Tripoli", "Coffee", "English", "T"}
"""The merchant's name with its initial, and the link to the other language."""


def test_every_page_opens_in_arabic(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    """Each method has its fields, each page its heading and no English text. A card is paid on the way."""
    tab = shoppers.come(ready(pages), "ar", expected_statuses=EXPECTED)
    for method, fields in FIELDS.items():
        tab.choose(method)
        for field in fields:
            expect(tab.field(field)).to_be_visible()
        expect(tab.page.get_by_role("textbox")).to_have_count(len(fields))
    for name in every_page(shoppers, tab):
        tab.page.wait_for_load_state()  # without its style, words of different elements are joined
        text = _REFERENCE.sub("", tab.page.locator("body").inner_text())
        assert set(_LATIN.findall(text)) <= _ALLOWED_IN_ARABIC, name
