"""Paying with the keyboard alone: Tab reaches every element, and the focus is visible."""

import pytest
from playwright.sync_api import Locator, expect

from tests.checkout.browser import page_texts
from tests.checkout.browser.shopper import Shopper, Shoppers
from tests.checkout.world import RETURN_URL, CheckoutWorld
from tests.waiting import eventually

pytestmark = pytest.mark.browser

_MOST_STOPS = 20
_IS_FOCUSED = "element => element === document.activeElement"
# Of the element, the label beside it and the box around it.
_LOOK = """element => [element, element.nextElementSibling, element.parentElement].filter(Boolean)
    .map((shown) => getComputedStyle(shown))
    .map((style) => [style.outlineStyle === "none" ? "" : style.outlineWidth, style.boxShadow, style.borderColor])
    .join(";")"""


def _tab_to(shopper: Shopper, wanted: Locator) -> None:
    """Press Tab until the element has the focus. It must then look different."""
    before = wanted.evaluate(_LOOK)
    for _ in range(_MOST_STOPS):
        shopper.page.keyboard.press("Tab")
        if wanted.evaluate(_IS_FOCUSED):
            eventually(lambda: wanted.evaluate(_LOOK) != before, within=15)
            return
    raise AssertionError(f"Tab does not lead to {wanted}")


def _type_into(shopper: Shopper, field: str, text: str) -> None:
    _tab_to(shopper, shopper.field(field))
    shopper.page.keyboard.type(text)


def test_card_can_be_paid_with_the_keyboard(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    shopper = shoppers.come(pages.make_intent(), "ar")
    _tab_to(shopper, shopper.radio("card"))
    _type_into(shopper, "Card number", "4242424242424242")
    _type_into(shopper, "Expiry date", "1234")
    _type_into(shopper, "Security code", "737")
    _tab_to(shopper, shopper.pay_button)
    shopper.page.keyboard.press("Enter")
    shopper.sees(page_texts.PAID)
    _tab_to(shopper, shopper.link("Return to merchant"))
    shopper.page.keyboard.press("Enter")
    expect(shopper.page).to_have_url(RETURN_URL)


def test_wallet_can_be_paid_with_the_keyboard(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    """Arrow keys choose the method, and Enter in a field submits the form."""
    shopper = shoppers.come(pages.make_intent())
    _tab_to(shopper, shopper.radio("card"))
    shopper.page.keyboard.press("ArrowDown")
    expect(shopper.radio("sadad")).to_be_checked()
    _type_into(shopper, "Phone number", "0913632323")
    _type_into(shopper, "Birth year", "1999")
    shopper.page.keyboard.press("Enter")
    shopper.sees(page_texts.CODE)
    expect(shopper.field("Verification code")).to_be_focused()
    shopper.page.keyboard.type("222222")
    shopper.page.keyboard.press("Enter")
    shopper.is_told(page_texts.WRONG_CODE)
    expect(shopper.field("Verification code")).to_be_focused()
    shopper.page.keyboard.type("111111")
    _tab_to(shopper, shopper.button("Confirm"))
    shopper.page.keyboard.press("Space")
    shopper.sees(page_texts.PAID)


def test_fields_of_other_methods_are_not_in_the_tab_order(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    shopper = shoppers.come(pages.make_intent())
    shopper.choose("adfali")
    _tab_to(shopper, shopper.field("Phone number"))
    shopper.page.keyboard.press("Tab")
    expect(shopper.pay_button).to_be_focused()
