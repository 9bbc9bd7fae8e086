"""The chosen language is kept through the checkout, and digits keep their direction."""

import pytest
from playwright.sync_api import expect

from tests.checkout.browser import page_texts
from tests.checkout.browser.shopper import Shoppers
from tests.checkout.world import CheckoutWorld

pytestmark = pytest.mark.browser


def test_english_is_kept_through_the_whole_checkout(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    """`sees` checks the language and direction of each page."""
    shopper = shoppers.come(pages.make_intent(), "en")
    shopper.sees(page_texts.READY)
    shopper.pay_by_card("4000000000000002")
    shopper.is_told(page_texts.DECLINED)
    shopper.sees(page_texts.READY)
    shopper.pay_by_wallet("sadad", "0913632323")
    shopper.sees(page_texts.CODE)
    shopper.enter_code("222222")
    shopper.is_told(page_texts.WRONG_CODE)
    shopper.sees(page_texts.CODE)
    shopper.link("Change number or method").click()
    shopper.sees(page_texts.READY)
    shopper.pay_by_wallet("adfali", "0921234567")
    shopper.sees(page_texts.CODE)
    shopper.enter_code("1111")
    shopper.sees(page_texts.PAID)


def test_numeric_fields_stay_left_to_right_in_arabic(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    shopper = shoppers.come(pages.make_intent(), "ar")
    for method, names in {
        "card": ("Card number", "Expiry date", "Security code"),
        "sadad": ("Phone number", "Birth year"),
    }.items():
        shopper.choose(method)
        for name in names:
            expect(shopper.field(name)).to_have_css("direction", "ltr")
    shopper.pay_by_wallet("sadad", "0913632323")
    expect(shopper.field("Verification code")).to_have_css("direction", "ltr")
