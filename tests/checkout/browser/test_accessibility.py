"""axe-core finds no violations on any page, in light or dark mode, and every page fits a phone."""

import pytest

from tests.accessibility import COLOUR_RULES, Appearance, axe_violations, unreachable_content
from tests.browser import DESKTOP, PHONE, SMALL_PHONE
from tests.checkout.browser.all_pages import EXPECTED, every_page
from tests.checkout.browser.page_states import ready
from tests.checkout.browser.shopper import Shopper, Shoppers
from tests.checkout.world import CheckoutWorld

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

# All rules once, then those that depend on colours: a page has the same structure in both languages.
LOOKS = {"ar": Appearance("light", DESKTOP), "en": Appearance("dark", DESKTOP, COLOUR_RULES)}
PHONES = (PHONE, SMALL_PHONE)


@pytest.mark.parametrize("lang", LOOKS)
def test_every_page_is_accessible_and_fits_a_phone(
    pages: CheckoutWorld, shoppers: Shoppers, lang: str
) -> None:
    tab = shoppers.come(ready(pages), lang, expected_statuses=EXPECTED)
    found = [violation for name in every_page(shoppers, tab) for violation in _violations(tab, name)]
    assert not found, "\n".join(found)


def _violations(tab: Shopper, name: str) -> list[str]:
    found = axe_violations(tab.page, name, (LOOKS[tab.lang],))
    for phone in PHONES:
        tab.page.set_viewport_size(phone)
        found += [f"{name}, {phone['width']} px: {violation}" for violation in unreachable_content(tab.page)]
    return found
