"""Arabic from right to left unless the address says lang=en; and what was chosen stays through the visit."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from tests.checkout.browser import words
from tests.checkout.browser.shopper import Shoppers
from tests.checkout.browser.states import SHOWN, unknown_link
from tests.checkout.browser.tour import every_page
from tests.checkout.browser.words import LANGUAGES
from tests.checkout.world import CheckoutWorld

_LATIN = re.compile(r"[A-Za-z]+")
_REFERENCE = re.compile(r"\b[A-Z0-9]{10}\b")
_ALLOWED_IN_ARABIC = {"Tripoli", "Coffee", "English", "T"}
"""The merchant's name with its initial, and the link to the other language."""


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_language_stays_through_the_whole_visit(
    pages: CheckoutWorld, shoppers: Shoppers, lang: str
) -> None:
    """`sees` looks at lang and dir each time."""
    shopper = shoppers.come(pages.make_intent(), lang)
    shopper.sees(words.READY)
    shopper.pay_by_card("4000000000000002")
    shopper.is_told(words.DECLINED)
    shopper.sees(words.READY)
    shopper.pay_by_wallet("sadad", "0913632323")
    shopper.sees(words.CODE)
    shopper.enter_code("222222")
    shopper.is_told(words.WRONG_CODE)
    shopper.sees(words.CODE)
    shopper.link("Change number or method").click()
    shopper.sees(words.READY)
    shopper.pay_by_wallet("adfali", "0921234567")
    shopper.sees(words.CODE)
    shopper.enter_code("1111")
    shopper.sees(words.PAID)


def test_anything_else_is_arabic(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    address = pages.page(pages.make_intent())
    shopper = shoppers.come(address, "ar")
    for query in ("?lang=fr", "?lang=", "?lang=EN"):
        shopper.page.goto(address + query)
        shopper.sees(words.READY)


def test_a_link_leads_to_the_other_language_and_back(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    """On every page of an intent; the link is in the language that it leads to."""
    reader = shoppers.come(pages.make_intent(), "ar")
    for shown in SHOWN:
        shoppers.lead(reader, shown.make(pages))
        for lang, other, name in (("ar", "en", "English"), ("en", "ar", "العربية")):
            replace(reader, lang=lang).sees(shown.title)
            link = reader.page.get_by_role("link", name=name, exact=True)
            expect(link).to_have_attribute("lang", other)
            link.click()
    reader.sees(SHOWN[-1].title)


def test_no_english_is_left_in_arabic(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    reader = shoppers.come(pages.make_intent(), "ar", expected_statuses=frozenset({404}))
    for name in every_page(shoppers, reader):
        text = _REFERENCE.sub("", reader.page.locator("body").inner_text())
        assert set(_LATIN.findall(text)) <= _ALLOWED_IN_ARABIC, name


@pytest.mark.parametrize(("lang", "amount"), [("ar", "25.500 د.ل."), ("en", "LYD 25.500")])
def test_the_amount_is_written_in_the_readers_way(
    pages: CheckoutWorld, shoppers: Shoppers, lang: str, amount: str
) -> None:
    shopper = shoppers.come(pages.make_intent(), lang)
    expect(shopper.page.get_by_role("banner")).to_contain_text(amount)
    expect(shopper.pay_button).to_contain_text(amount)


def test_fields_of_digits_stay_left_to_right_in_arabic(pages: CheckoutWorld, shoppers: Shoppers) -> None:
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


@pytest.mark.parametrize("lang", LANGUAGES)
def test_an_unknown_link(pages: CheckoutWorld, shoppers: Shoppers, lang: str) -> None:
    shopper = shoppers.come(unknown_link(pages, lang), lang, expected_statuses=frozenset({404}))
    shopper.sees(words.UNKNOWN_LINK)
    shopper.page.goto(f"{pages.url}/pay/nonsense?lang={lang}")
    shopper.sees(words.UNKNOWN_LINK)
