"""Phones from 320 px, long texts, light and dark mode. test_accessibility.py checks each page on a phone."""

import pytest
from playwright.sync_api import ViewportSize, expect

from shared.domain.applications.registry import NewApplication
from tests.accessibility import unreachable_content
from tests.browser import DESKTOP, PHONE, SMALL_PHONE
from tests.checkout.browser import page_texts
from tests.checkout.browser.page_states import ready
from tests.checkout.browser.page_texts import LANGUAGES
from tests.checkout.browser.shopper import Shopper, Shoppers
from tests.checkout.world import CheckoutWorld

pytestmark = pytest.mark.browser

_BRIGHTNESS = """() => {
    const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).map(Number);
    return (red + green + blue) / 3;
}"""


@pytest.mark.parametrize("lang", LANGUAGES)
def test_long_names_and_descriptions_fit_a_small_phone(
    pages: CheckoutWorld, shoppers: Shoppers, lang: str
) -> None:
    application = pages.make_application(NewApplication("long", "M" * 60))
    tab = shoppers.come(pages.make_intent(), lang, viewport=SMALL_PHONE)
    for description in ("W" * 255, "قهوة " * 50, None):
        intent = pages.make_intent(
            application_id=application.id, description=description, amount=1_000_000_000
        )
        shoppers.lead(tab, intent)
        tab.sees(page_texts.READY)
        assert unreachable_content(tab.page) == [], repr(description)


@pytest.mark.parametrize(("lang", "viewport"), [("ar", SMALL_PHONE), ("en", PHONE)], ids=["320", "390"])
def test_payment_on_a_phone(
    pages: CheckoutWorld, shoppers: Shoppers, lang: str, viewport: ViewportSize
) -> None:
    shopper = shoppers.come(ready(pages), lang, viewport=viewport)
    shopper.pay_by_card("4000000000000002")
    shopper.is_told(page_texts.DECLINED)
    expect(shopper.alert).to_be_in_viewport()
    shopper.pay_by_wallet("sadad", "0913632323")
    shopper.enter_code("111111")
    shopper.sees(page_texts.PAID)
    expect(shopper.title(page_texts.PAID)).to_be_in_viewport()


@pytest.mark.parametrize("viewport", [SMALL_PHONE, DESKTOP], ids=["phone", "desktop"])
def test_banner_of_a_test_payment_is_a_line_or_two_above_everything(
    pages: CheckoutWorld, shoppers: Shoppers, viewport: ViewportSize
) -> None:
    """Regression: on a wide screen it took the place of the form's first half."""
    tab = shoppers.come(ready(pages), "en", viewport=viewport)
    tab.sees(page_texts.READY)
    banner, band = (tab.page.locator(each).bounding_box() for each in (".test-banner", ".band"))
    assert banner is not None
    assert band is not None
    assert (banner["x"], banner["y"], banner["width"]) == (0, 0, viewport["width"])
    assert banner["height"] < 80
    assert band["y"] == pytest.approx(banner["height"], abs=1)


def test_page_has_a_light_and_a_dark_mode(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    light, dark = (_brightness(shoppers.come(ready(pages), dark=dark)) for dark in (False, True))
    assert light > 200
    assert dark < 60


def _brightness(shopper: Shopper) -> float:
    shopper.sees(page_texts.READY)
    brightness: float = shopper.page.evaluate(_BRIGHTNESS)
    return brightness
