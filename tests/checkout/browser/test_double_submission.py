"""Nobody pays twice: double clicks, the back button, and refreshing."""

import pytest
from playwright.sync_api import expect

from tests.checkout.browser import page_texts
from tests.checkout.browser.shopper import SHOP, Shopper, Shoppers
from tests.checkout.world import CheckoutWorld
from tests.waiting import eventually

pytestmark = pytest.mark.browser

GOOD = "4242424242424242"
SILENT = "4000000000000077"

_REMEMBER_LAST_LOOK = """button => {
    const remember = () => sessionStorage.setItem(
        "last look", `${button.disabled ? "disabled" : "enabled"}: ${button.innerText.trim()}`);
    new MutationObserver(remember).observe(button, { attributes: true, childList: true, subtree: true });
}"""


def test_a_double_click_sends_the_form_once(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    intent = pages.make_intent()
    shopper = shoppers.come(intent)
    shopper.enter_card(GOOD)
    with shopper.noting_posts() as posts:
        shopper.pay_button.dblclick(no_wait_after=True)
        shopper.sees(page_texts.PAID)
    assert len(posts) == 1
    assert len(pages.attempts(intent)) == 1
    assert len(pages.charges(intent)) == 1


@pytest.mark.parametrize("javascript", [True, False])
def test_second_click_while_the_bank_is_slow_charges_once(
    pages: CheckoutWorld, shoppers: Shoppers, javascript: bool
) -> None:
    """With JavaScript the form is sent once, and the button is disabled. Without it, it arrives twice."""
    intent = pages.make_intent()
    shopper = shoppers.come(intent, javascript=javascript)
    shopper.enter_card(SILENT)
    # By position: Playwright's locators would wait for the page that is loading.
    box = shopper.pay_button.bounding_box()
    assert box is not None
    place = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    shopper.pay_button.evaluate(_REMEMBER_LAST_LOOK)
    with shopper.noting_posts() as posts:
        shopper.page.mouse.click(*place)
        eventually(lambda: pages.attempts(intent))
        shopper.page.mouse.click(*place)
        shopper.sees(page_texts.PROCESSING)
        shopper.page.reload()
        shopper.sees(page_texts.PROCESSING)
    assert len(posts) == (1 if javascript else 2)
    assert len(pages.attempts(intent)) == 1
    assert len(pages.charges(intent)) == 1
    if javascript:
        last_look = shopper.page.evaluate("sessionStorage.getItem('last look')")
        assert last_look == f"disabled: {shopper.says('One moment…')}"


@pytest.mark.parametrize("javascript", [True, False])
def test_back_after_paying_shows_the_receipt(
    pages: CheckoutWorld, shoppers: Shoppers, javascript: bool
) -> None:
    intent = pages.make_intent()
    shopper = shoppers.come(intent, javascript=javascript)
    shopper.pay_by_card("4000000000000002")
    shopper.is_told(page_texts.DECLINED)
    shopper.pay_by_wallet("adfali", "0921234567")
    shopper.enter_code("1111")
    shopper.sees(page_texts.PAID)
    while shopper.page.evaluate("history.length") > 1 and shopper.page.go_back() is not None:
        _sees_only_the_receipt(shopper)
    assert len([state for state, _ in pages.attempts(intent) if state == "paid"]) == 1


def test_back_from_the_merchant_shows_the_receipt_without_another_redirect(
    pages: CheckoutWorld, shoppers: Shoppers
) -> None:
    """Otherwise the back button would be useless."""
    shopper = shoppers.come(pages.make_intent(), turns_clock=True)
    shopper.pay_by_card(GOOD)
    shopper.sees(page_texts.PAID)
    shopper.page.clock.run_for(11_000)
    shopper.page.wait_for_url(f"{SHOP}**")
    shopper.page.go_back()
    shopper.sees(page_texts.PAID)
    shopper.page.clock.run_for(30_000)
    _sees_only_the_receipt(shopper)
    assert len(shopper.visitor.reached) == 1


def _sees_only_the_receipt(shopper: Shopper) -> None:
    shopper.sees(page_texts.PAID)
    expect(shopper.page.get_by_role("textbox")).to_have_count(0)
    expect(shopper.page.get_by_role("radio")).to_have_count(0)


def test_refreshing_the_receipt_submits_nothing(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    intent = pages.make_intent()
    shopper = shoppers.come(intent)
    shopper.pay_by_card(GOOD)
    shopper.sees(page_texts.PAID)
    with shopper.noting_posts() as posts:
        shopper.page.reload()
        shopper.sees(page_texts.PAID)
    assert posts == []
    assert len(pages.charges(intent)) == 1
