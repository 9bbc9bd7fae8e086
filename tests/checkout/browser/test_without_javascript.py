"""Everything works without JavaScript: paying, codes, and pages that refresh themselves."""

import pytest
from playwright.sync_api import expect

from tests.checkout.browser import page_texts
from tests.checkout.browser.page_states import processing, settle_as_paid
from tests.checkout.browser.page_texts import LANGUAGES
from tests.checkout.browser.shopper import WALLETS, SandboxWallet, Shoppers
from tests.checkout.world import RETURN_URL, CheckoutWorld

pytestmark = pytest.mark.browser


def test_card_can_be_paid_without_javascript(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    shopper = shoppers.come(pages.make_intent(), "ar", javascript=False)
    shopper.pay_by_card("4000 0000 0000 0002")
    shopper.is_told(page_texts.DECLINED)
    shopper.pay_by_card("4242 4242 4242 4242")
    shopper.sees(page_texts.PAID)
    expect(shopper.button("Print")).to_have_count(0)
    expect(shopper.button("Stay here")).to_have_count(0)
    shopper.link("Return to merchant").click()
    expect(shopper.page).to_have_url(RETURN_URL)


@pytest.mark.parametrize(
    ("wallet", "lang"), list(zip(WALLETS, LANGUAGES, strict=True)), ids=["sadad", "adfali"]
)
def test_wallet_can_be_paid_without_javascript(
    pages: CheckoutWorld, shoppers: Shoppers, lang: str, wallet: SandboxWallet
) -> None:
    shopper = shoppers.come(pages.make_intent(), lang, javascript=False)
    shopper.pay_by_wallet(wallet.method, wallet.phone)
    shopper.sees(page_texts.CODE)
    shopper.enter_code(wallet.wrong)
    shopper.is_told(page_texts.WRONG_CODE)
    shopper.enter_code(wallet.right)
    shopper.sees(page_texts.PAID)


def test_the_processing_page_refreshes_itself(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    intent = processing(pages)
    waiting = shoppers.come(intent, "ar", javascript=False)
    waiting.sees(page_texts.PROCESSING)
    settle_as_paid(pages, intent)
    waiting.sees(page_texts.PAID)


def test_receipt_redirects_automatically_once(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    """To exactly the return_url, and not when it is opened again."""
    shopper = shoppers.come(pages.make_intent(), javascript=False)
    shopper.pay_by_card("4242424242424242")
    shopper.sees(page_texts.PAID)
    refresh = shopper.page.locator("meta[http-equiv=refresh]")
    expect(refresh).to_have_attribute("content", f"10;url={RETURN_URL}")
    shopper.page.reload()
    shopper.sees(page_texts.PAID)
    expect(refresh).to_have_count(0)


def test_processing_page_has_a_refresh_link(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    intent = processing(pages)
    shopper = shoppers.come(intent, javascript=False)
    settle_as_paid(pages, intent)
    shopper.link("Refresh").click()
    shopper.sees(page_texts.PAID)
