"""Every page: axe-core finds nothing, in either language, light or dark, and it fits a phone."""

import pytest

from tests.browser import DESKTOP, PHONE, SMALL_PHONE
from tests.checkout.browser.shopper import Shopper, Shoppers
from tests.checkout.browser.states import ready
from tests.checkout.browser.tour import every_page
from tests.checkout.browser.words import LANGUAGES
from tests.checkout.world import CheckoutWorld
from tests.page_looks import OF_COLOUR, Look, axe_troubles, out_of_reach

# All rules, then what a change of colours can change.
LOOKS = (Look("light", DESKTOP), Look("dark", DESKTOP, OF_COLOUR))
PHONES = (PHONE, SMALL_PHONE)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_page_is_for_everybody_and_fits_a_phone(
    pages: CheckoutWorld, shoppers: Shoppers, lang: str
) -> None:
    """In one tour, which takes long."""
    tab = shoppers.come(ready(pages), lang, expected_statuses=frozenset({404}))
    found = [trouble for name in every_page(shoppers, tab) for trouble in _troubles(tab, name)]
    assert not found, "\n".join(found)


def _troubles(tab: Shopper, name: str) -> list[str]:
    found = axe_troubles(tab.page, name, LOOKS)
    for phone in PHONES:
        tab.page.set_viewport_size(phone)
        found += [f"{name}, {phone['width']} px: {trouble}" for trouble in out_of_reach(tab.page)]
    return found
