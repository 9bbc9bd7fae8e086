"""Input fields are formatted and validated while customers type or paste, in any digits."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser import PHONE
from tests.checkout.browser import page_texts
from tests.checkout.browser.shopper import Shopper, Shoppers
from tests.checkout.world import CheckoutWorld

pytestmark = pytest.mark.browser

ARABIC_INDIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
PERSIAN = str.maketrans("0123456789", "۰۱۲۳۴۵۶۷۸۹")
RIGHT_TO_LEFT_ISOLATE, LEFT_TO_RIGHT_MARK, POP = "\u2067", "\u200e", "\u2069"

WAYS: dict[str, Callable[[str], str]] = {
    "arabic-indic digits": lambda text: text.translate(ARABIC_INDIC),
    "persian digits": lambda text: text.translate(PERSIAN),
    "bidi marks": lambda text: f"{RIGHT_TO_LEFT_ISOLATE}{LEFT_TO_RIGHT_MARK}{text}{POP}",
    "spaces": lambda text: f" {text[:3]} {text[3:]}\u00a0",
}
_COLOUR = """name => {
    const shown = document.body.appendChild(document.createElement("i"));
    shown.style.color = getComputedStyle(document.documentElement).getPropertyValue(name);
    return getComputedStyle(shown).color;
}"""
_TEXT = """button => {
    const shown = [...button.querySelectorAll("span")].filter((span) => span.checkVisibility());
    const outer = shown.find((span) => span.matches(".acts-now, .sends-code"));
    return [...outer.childNodes].filter((node) => !node.matches?.(".unseen")).map((node) => node.textContent).join("");
}"""
_AMOUNTS = {"ar": "25.500\u00a0د.ل.\u200f", "en": "LYD\u00a025.500"}
with_and_without_javascript = pytest.mark.parametrize("javascript", [True, False])


def _paste(shopper: Shopper, field: str, text: str) -> None:
    shopper.field(field).focus()
    shopper.page.keyboard.insert_text(text)


@with_and_without_javascript
def test_card_is_accepted_in_any_digits(pages: CheckoutWorld, shoppers: Shoppers, javascript: bool) -> None:
    card = {"Card number": "4242 4242 4242 4242", "Expiry date": "12/34", "Security code": "737"}
    shopper = shoppers.come(pages.make_intent(), "ar", javascript=javascript)
    for way in WAYS.values():
        shoppers.lead(shopper, pages.make_intent())
        for field, text in card.items():
            _paste(shopper, field, way(text))
            if javascript:
                expect(shopper.field(field)).to_have_value(text)
        shopper.pay()
        shopper.sees(page_texts.PAID)


@with_and_without_javascript
def test_phone_and_code_are_accepted_in_any_digits(
    pages: CheckoutWorld, shoppers: Shoppers, javascript: bool
) -> None:
    shopper = shoppers.come(pages.make_intent(), "ar", javascript=javascript)
    for way, phone in zip(
        WAYS.values(), ("0913632323", "+218913632323", "00218913632323", "0911234567"), strict=True
    ):
        shoppers.lead(shopper, pages.make_intent())
        shopper.choose("sadad")
        _paste(shopper, "Phone number", way(phone))
        _paste(shopper, "Birth year", way("1999"))
        shopper.pay()
        shopper.sees(page_texts.CODE)
        _paste(shopper, "Verification code", way("111111"))
        shopper.button("Confirm").click()
        shopper.sees(page_texts.PAID)


def test_fields_are_formatted_while_typing(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    shopper = shoppers.come(pages.make_intent())
    for field, typed, shown in (
        ("Card number", "4242424242424242", "4242 4242 4242 4242"),
        ("Card number", "٤٢٤٢٤", "4242 4"),
        ("Card number", "4242-4242x", "4242 4242"),
        ("Expiry date", "1234", "12/34"),
        ("Expiry date", "834", "08/34"),
        ("Expiry date", "8/34", "08/34"),
        ("Expiry date", "12/2034", "12/2034"),
        ("Expiry date", "١٢٣٤", "12/34"),
        ("Security code", "7a37", "737"),
    ):
        shopper.field(field).clear()
        shopper.field(field).press_sequentially(typed)
        expect(shopper.field(field)).to_have_value(shown)


def test_caret_stays_in_place_when_digits_are_typed_in_the_middle(
    pages: CheckoutWorld, shoppers: Shoppers
) -> None:
    shopper = shoppers.come(pages.make_intent())
    number = shopper.field("Card number")
    number.press_sequentially("424424242424242")
    for _ in range(15):
        number.press("ArrowLeft")
    number.press_sequentially("99")
    expect(number).to_have_value("4249 9424 2424 2424 2")
    for _ in range(2):
        number.press("Backspace")
    expect(number).to_have_value("4244 2424 2424 242")


def test_the_expiry_date_can_be_deleted(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    """A slash that was inserted automatically is not inserted again after it was deleted."""
    shopper = shoppers.come(pages.make_intent())
    expiry = shopper.field("Expiry date")
    expiry.press_sequentially("1234")
    for _ in range(5):
        expiry.press("Backspace")
    expect(expiry).to_have_value("")


def test_brand_of_the_card_is_shown(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    shopper = shoppers.come(pages.make_intent(), "ar")
    brand = shopper.page.get_by_role("status").filter(visible=True)
    expect(brand).to_have_count(0)
    for number, name in {
        "4242": "Visa",
        "5555 55": "Mastercard",
        "6395 04": shopper.says("Local card"),
        "6394 99": shopper.says("Local card"),
        "2221": "Mastercard",
    }.items():
        shopper.field("Card number").fill(number)
        expect(brand).to_have_text(name)
    shopper.field("Card number").fill("9")
    expect(brand).to_have_count(0)


def test_errors_are_shown_when_a_field_loses_focus(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    """The error disappears once the field is right."""
    shopper = shoppers.come(pages.make_intent())
    for field, wrong, sentence, right in (
        ("Card number", "4242424242424241", page_texts.CARD_NUMBER_WRONG, "4242424242424242"),
        ("Expiry date", "01/20", page_texts.EXPIRY_PAST, "12/34"),
        ("Expiry date", "13/34", page_texts.EXPIRY_WRONG, "12/34"),
        ("Security code", "12", page_texts.SECURITY_CODE_WRONG, "123"),
    ):
        shopper.field(field).fill(wrong)
        shopper.field(field).blur()
        shopper.has_wrong(field, sentence)
        shopper.field(field).fill(right)
        shopper.has_right(field)
    shopper.pay()
    shopper.sees(page_texts.PAID)


@pytest.mark.parametrize(("lang", "javascript"), [("ar", True), ("en", False)])
def test_invalid_fields_are_not_sent_to_the_bank(
    pages: CheckoutWorld, shoppers: Shoppers, lang: str, javascript: bool
) -> None:
    """The page and the server show the same errors, and no card number is returned in a page."""
    intent = pages.make_intent()
    shopper = shoppers.come(intent, lang, javascript=javascript, expected_statuses=frozenset({422}))
    with shopper.noting_posts() as posts:
        shopper.pay()
        shopper.is_told(page_texts.CHECK_WHAT_YOU_ENTERED)
        shopper.has_wrong("Card number", page_texts.CARD_NUMBER_MISSING)
        shopper.has_wrong("Expiry date", page_texts.EXPIRY_MISSING)
        shopper.has_wrong("Security code", page_texts.SECURITY_CODE_WRONG)
        shopper.pay_by_card("4242424242424241", expiry="01/20")
        shopper.has_wrong("Card number", page_texts.CARD_NUMBER_WRONG)
        shopper.has_wrong("Expiry date", page_texts.EXPIRY_PAST)
        shopper.pay_by_wallet("sadad", "0813632323", birth_year="99")
        shopper.has_wrong("Phone number", page_texts.PHONE_WRONG)
        shopper.has_wrong("Birth year", page_texts.BIRTH_YEAR_WRONG)
    expect(shopper.field("Phone number")).to_have_value("0813632323")
    assert len(posts) == (0 if javascript else 3)
    assert "42424" not in shopper.page.content()
    assert pages.attempts(intent) == []


def test_error_summary_links_to_the_field(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    shopper = shoppers.come(pages.make_intent())
    shopper.pay()
    expect(shopper.field("Card number")).to_be_focused()
    shopper.alert.get_by_role("link", name=page_texts.EXPIRY_MISSING).click()
    expect(shopper.field("Expiry date")).to_be_focused()


def test_errors_that_were_fixed_leave_the_summary(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    """So do those of a method that is no longer chosen. The summary disappears with its last error."""
    shopper = shoppers.come(pages.make_intent())
    shopper.pay()
    errors = shopper.alert.get_by_role("link")
    expect(errors).to_have_text(
        [page_texts.CARD_NUMBER_MISSING, page_texts.EXPIRY_MISSING, page_texts.SECURITY_CODE_WRONG]
    )
    shopper.field("Expiry date").fill("12/34")
    expect(errors).to_have_text([page_texts.CARD_NUMBER_MISSING, page_texts.SECURITY_CODE_WRONG])
    shopper.field("Card number").fill("4242424242424241")
    shopper.field("Card number").blur()
    expect(errors).to_have_text([page_texts.CARD_NUMBER_WRONG, page_texts.SECURITY_CODE_WRONG])
    shopper.field("Card number").fill("4242424242424242")
    expect(errors).to_have_text([page_texts.SECURITY_CODE_WRONG])
    shopper.choose("adfali")
    expect(shopper.alert).to_have_count(0)


@pytest.mark.parametrize(("lang", "javascript"), [("ar", True), ("en", False)])
def test_phone_that_the_wallet_does_not_take_is_refused_with_its_prefixes(
    pages: CheckoutWorld, shoppers: Shoppers, lang: str, javascript: bool
) -> None:
    """The other wallet takes it."""
    intent = pages.make_intent()
    shopper = shoppers.come(intent, lang, javascript=javascript, expected_statuses=frozenset({422}))
    with shopper.noting_posts() as posts:
        shopper.pay_by_wallet("sadad", "0921234567")
        expect(shopper.field("Phone number")).to_have_accessible_description(
            re.compile(re.escape(page_texts.SADAD_PREFIXES[lang]))
        )
        expect(shopper.alert).to_contain_text(page_texts.SADAD_PREFIXES[lang])
    assert len(posts) == (0 if javascript else 1)
    shopper.choose("adfali")
    if javascript:
        shopper.has_right("Phone number")
        expect(shopper.alert).to_have_count(0)
    shopper.pay()
    shopper.sees(page_texts.CODE)


def test_invalid_field_is_red_while_it_has_the_focus(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    shopper = shoppers.come(pages.make_intent())
    bad = shopper.page.evaluate(_COLOUR, "--bad")
    box = shopper.page.locator(".box").filter(has=shopper.field("Card number"))
    expect(box).not_to_have_css("border-color", bad)
    shopper.pay()
    expect(shopper.field("Card number")).to_be_focused()
    expect(box).to_have_css("border-color", bad)
    shopper.field("Card number").fill("4242424242424242")
    expect(box).not_to_have_css("border-color", bad)


@pytest.mark.parametrize("lang", page_texts.LANGUAGES)
def test_badge_of_a_local_card_hides_no_digit(pages: CheckoutWorld, shoppers: Shoppers, lang: str) -> None:
    shopper = shoppers.come(pages.make_intent(), lang, viewport={"width": 360, "height": 740})
    number = shopper.field("Card number")
    number.fill("6395 0438 3518 0860 123")
    badge = shopper.page.get_by_role("status").filter(visible=True)
    expect(badge).to_have_text(shopper.says("Local card"))
    expect(badge).to_be_in_viewport()
    assert number.evaluate("input => input.scrollWidth <= input.clientWidth")
    field, over = number.bounding_box(), badge.bounding_box()
    assert field is not None
    assert over is not None
    assert over["y"] + over["height"] <= field["y"]


@pytest.mark.parametrize("lang", page_texts.LANGUAGES)
def test_button_says_what_it_does(pages: CheckoutWorld, shoppers: Shoppers, lang: str) -> None:
    """A card is charged; a wallet sends a code first. Its accessible name keeps the amount (DESIGN §5)."""
    shopper = shoppers.come(pages.make_intent(), lang)
    assert _shown_text(shopper) == shopper.says("Pay %(amount)s", amount=_AMOUNTS[lang])
    for wallet in ("sadad", "adfali"):
        shopper.choose(wallet)
        assert _shown_text(shopper) == shopper.says("Send code")


def _shown_text(shopper: Shopper) -> str:
    """Return the text of the button without what only screen readers read."""
    expect(shopper.pay_button).to_be_visible()
    text: str = shopper.pay_button.evaluate(_TEXT)
    return text.strip()


def test_one_click_is_enough_after_a_mistyped_field(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    """An error that appears when a field loses focus must not move the button that is being clicked."""
    shopper = shoppers.come(pages.make_intent(), viewport=PHONE)
    shopper.field("Card number").fill("4242424242424241")
    shopper.pay()
    shopper.is_told(page_texts.CHECK_WHAT_YOU_ENTERED)
    shopper.has_wrong("Expiry date", page_texts.EXPIRY_MISSING)
