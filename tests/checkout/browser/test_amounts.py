"""The amount on each page of the checkout, as large as it may be."""

import pytest

from tests.browser import DESKTOP, SMALL_PHONE
from tests.checkout.browser.page_states import SHOWN
from tests.checkout.browser.page_texts import LANGUAGES
from tests.checkout.browser.shopper import Shoppers
from tests.checkout.world import CheckoutWorld
from tests.page_layout import PHONE, money_problems

pytestmark = pytest.mark.browser

LARGEST = 1_000_000_000
"""In thousandths, as the API takes it."""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_largest_amount_fits_in_one_line_with_its_currency(
    pages: CheckoutWorld, shoppers: Shoppers, lang: str
) -> None:
    tab = shoppers.come(pages.make_intent(), lang)
    found = []
    for shown in SHOWN:
        intent = shown.make(pages)
        with pages.database.transaction() as connection:
            connection.execute(
                "update payment_intents set amount = %s where uuid = %s", (LARGEST, intent.uuid)
            )
        shoppers.lead(tab, intent)
        tab.sees(shown.title)
        for screen in (SMALL_PHONE, PHONE, DESKTOP):
            tab.page.set_viewport_size(screen)
            found += [
                f"{shown.name}, {screen['width']} px: {problem}" for problem in money_problems(tab.page)
            ]
    assert not found, "\n".join(found)
