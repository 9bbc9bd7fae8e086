"""Every page on phones from 320 px, and on light and dark screens."""

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from shared.applications.registry import NewApplication
from tests.browser import PHONE, SMALL_PHONE
from tests.checkout.browser import words
from tests.checkout.browser.shopper import Shopper, Shoppers
from tests.checkout.browser.states import ready
from tests.checkout.browser.tour import every_page
from tests.checkout.browser.words import LANGUAGES
from tests.checkout.world import CheckoutWorld

in_both_languages = pytest.mark.parametrize("lang", LANGUAGES)

_OVERHANG = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_BRIGHTNESS = """() => {
    const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).map(Number);
    return (red + green + blue) / 3;
}"""


@in_both_languages
def test_every_page_fits_a_phone(pages: CheckoutWorld, shoppers: Shoppers, lang: str) -> None:
    tab = shoppers.come(ready(pages), lang, viewport=PHONE, expected_statuses=frozenset({404}))
    for name in every_page(shoppers, tab):
        for viewport in (PHONE, SMALL_PHONE):
            tab.page.set_viewport_size(viewport)
            _fits(tab.page, viewport, name)


@in_both_languages
def test_names_and_descriptions_of_any_length_fit(
    pages: CheckoutWorld, shoppers: Shoppers, lang: str
) -> None:
    application = pages.make_application(NewApplication("long", "M" * 60))
    tab = shoppers.come(pages.make_intent(), lang, viewport=SMALL_PHONE)
    for description in ("W" * 255, "قهوة " * 50, None):
        intent = pages.make_intent(
            application_id=application.id, description=description, amount=1_000_000_000
        )
        shoppers.lead(tab, intent)
        tab.sees(words.READY)
        _fits(tab.page, SMALL_PHONE, repr(description))


def _fits(page: Page, viewport: ViewportSize, name: str) -> None:
    assert page.evaluate(_OVERHANG) == 0, f"{name}: scrolls sideways"
    for role, thing in _things_to_use(page):
        box = thing.bounding_box()
        assert box is not None
        assert box["x"] >= 0, f"{name}: a {role} begins outside"
        assert box["x"] + box["width"] <= viewport["width"], f"{name}: a {role} ends outside"


def _things_to_use(page: Page) -> list[tuple[str, Locator]]:
    links, buttons = page.get_by_role("link").all(), page.get_by_role("button").all()
    radios, fields = page.get_by_role("radio").all(), page.get_by_role("textbox").all()
    return [
        *(("link", link) for link in links),
        *(("button", button) for button in buttons),
        *(("radio", radio) for radio in radios),
        *(("field", field) for field in fields),
    ]


@pytest.mark.parametrize(("lang", "viewport"), [("ar", SMALL_PHONE), ("en", PHONE)], ids=["320", "390"])
def test_paying_on_a_phone(
    pages: CheckoutWorld, shoppers: Shoppers, lang: str, viewport: ViewportSize
) -> None:
    shopper = shoppers.come(ready(pages), lang, viewport=viewport)
    shopper.pay_by_card("4000000000000002")
    shopper.is_told(words.DECLINED)
    expect(shopper.alert).to_be_in_viewport()
    shopper.pay_by_wallet("sadad", "0913632323")
    shopper.enter_code("111111")
    shopper.sees(words.PAID)
    expect(shopper.title(words.PAID)).to_be_in_viewport()


def test_light_and_dark(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    light, dark = (_brightness(shoppers.come(ready(pages), dark=dark)) for dark in (False, True))
    assert light > 200
    assert dark < 60


def _brightness(shopper: Shopper) -> float:
    shopper.sees(words.READY)
    brightness: float = shopper.page.evaluate(_BRIGHTNESS)
    return brightness
