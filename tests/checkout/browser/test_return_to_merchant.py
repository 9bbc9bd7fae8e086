"""The return to the merchant: exactly to return_url, and automatically only for a customer who has just paid."""

import pytest
from playwright.sync_api import expect

from tests.checkout.browser import page_texts
from tests.checkout.browser.page_states import failed, on_the_banks_page, paid, ready, without_method
from tests.checkout.browser.shopper import SHOP, Shopper, Shoppers
from tests.checkout.world import RETURN_URL, CheckoutWorld

pytestmark = pytest.mark.browser

LONG_AFTER_MS = 60_000
TRICKY = f"{SHOP}back?a=1&copy=2&amp;b=%2F%2f&c=a+b&lang=en&x=%D9%82#done"


def _just_paid(pages: CheckoutWorld, shoppers: Shoppers, return_url: str | None, lang: str = "en") -> Shopper:
    shopper = shoppers.come(pages.make_intent(return_url=return_url), lang, turns_clock=True)
    shopper.pay_by_card("4242424242424242")
    shopper.sees(page_texts.PAID)
    return shopper


@pytest.mark.parametrize(("return_url", "lang"), [(RETURN_URL, "ar"), (TRICKY, "en")])
def test_a_customer_who_paid_is_redirected(
    pages: CheckoutWorld, shoppers: Shoppers, return_url: str, lang: str
) -> None:
    shopper = _just_paid(pages, shoppers, return_url, lang)
    shopper.page.clock.run_for(5_000)
    assert shopper.visitor.reached == []
    shopper.page.clock.run_for(6_000)
    expect(shopper.page).to_have_url(return_url)
    assert shopper.visitor.reached == [return_url.partition("#")[0]]


def test_return_link_works_before_the_automatic_redirect(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    shopper = _just_paid(pages, shoppers, TRICKY)
    shopper.link("Return to merchant").click()
    expect(shopper.page).to_have_url(TRICKY)


def test_stay_here_stops_the_redirect(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    shopper = _just_paid(pages, shoppers, RETURN_URL, "ar")
    shopper.page.clock.run_for(3_000)
    shopper.button("Stay here").click()
    _stays(shopper)
    shopper.link("Return to merchant").click()
    expect(shopper.page).to_have_url(RETURN_URL)


def test_printing_stops_the_redirect(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    shopper = _just_paid(pages, shoppers, RETURN_URL)
    shopper.page.evaluate("() => { window.print = () => window.dispatchEvent(new Event('beforeprint')); }")
    shopper.button("Print").click()
    _stays(shopper)


def test_print_button_prints_the_receipt(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    shopper = shoppers.come(paid(pages))
    shopper.page.evaluate("() => { window.printed = 0; window.print = () => { window.printed += 1; }; }")
    shopper.button("Print").click()
    assert shopper.page.evaluate("window.printed") == 1


def test_reopened_receipt_does_not_redirect(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    """Neither for the customer who paid nor for anybody else."""
    shopper = _just_paid(pages, shoppers, RETURN_URL)
    shopper.page.reload()
    _stays(shopper)
    _stays(shoppers.come(shopper.page.url, turns_clock=True))


def _stays(shopper: Shopper) -> None:
    shopper.page.clock.run_for(LONG_AFTER_MS)
    shopper.sees(page_texts.PAID)
    expect(shopper.button("Stay here")).to_have_count(0)
    assert shopper.visitor.reached == []


def test_receipt_without_a_return_url_has_no_link(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    shopper = _just_paid(pages, shoppers, None)
    _stays(shopper)
    expect(shopper.link("Return to merchant")).to_have_count(0)
    expect(shopper.button("Print")).to_be_visible()


def test_unpaid_pages_link_back_to_the_merchant(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    shopper = shoppers.come(pages.make_intent(), "ar")
    for make in (ready, failed, without_method, on_the_banks_page):
        shoppers.lead(shopper, make(pages))
        shopper.link("Return to merchant").click()
        expect(shopper.page).to_have_url(RETURN_URL)
    assert shopper.visitor.reached == [RETURN_URL] * 4


def test_link_of_the_merchants_page_leaves_an_open_form_usable(
    pages: CheckoutWorld, shoppers: Shoppers
) -> None:
    """The cookie is SameSite=Lax. With Strict the second visit would replace it, and the form would be refused."""
    intent = pages.make_intent()
    shopper = shoppers.come(intent)
    address = shoppers.address(intent, "en")
    shopper.visitor.context.route(
        f"{SHOP}order",
        lambda route: route.fulfill(
            body=f'<title>Order</title><a href="{address}">Pay</a>', content_type="text/html"
        ),
    )
    second = shopper.visitor.open(f"{SHOP}order")
    second.get_by_role("link", name="Pay").click()
    Shopper(second, shopper.visitor, "en").sees(page_texts.READY)
    shopper.pay_by_card("4242424242424242")
    shopper.sees(page_texts.PAID)
