"""A link that runs out while its page is open: nothing is charged, and the way back is shown."""

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from tests.checkout.browser import words
from tests.checkout.browser.shopper import Shopper, Shoppers
from tests.checkout.world import RETURN_URL, CheckoutWorld
from tests.clock import Clock

ALL_ITS_TIME = timedelta(hours=24)


@pytest.mark.parametrize(("lang", "javascript"), [("ar", True), ("en", True), ("en", False)])
def test_the_form_is_sent_too_late(
    pages: CheckoutWorld, shoppers: Shoppers, clock: Clock, lang: str, javascript: bool
) -> None:
    intent = pages.make_intent()
    shopper = shoppers.come(intent, lang, javascript=javascript)
    shopper.enter_card("4242424242424242")
    clock.advance(ALL_ITS_TIME)
    shopper.pay()
    _sees_the_way_back(shopper)
    assert pages.attempts(intent) == []
    assert pages.charges(intent) == []


def test_the_code_is_sent_too_late(pages: CheckoutWorld, shoppers: Shoppers, clock: Clock) -> None:
    intent = pages.make_intent()
    clock.advance(ALL_ITS_TIME - timedelta(minutes=2))
    shopper = shoppers.come(intent)
    shopper.pay_by_wallet("sadad", "0913632323")
    shopper.sees(words.CODE)
    clock.advance(timedelta(minutes=2))
    shopper.enter_code("111111")
    _sees_the_way_back(shopper)
    assert "paid" not in [charge["status"] for charge in pages.charges(intent)]


def test_the_time_left_runs_out_before_the_customers_eyes(
    pages: CheckoutWorld, shoppers: Shoppers, clock: Clock
) -> None:
    intent = pages.make_intent()
    clock.stop_at(intent.expires_at - timedelta(seconds=90))
    shopper = shoppers.come(intent, turns_clock=True)
    time_left = shopper.page.get_by_role("timer")
    expect(time_left).to_contain_text("1:30")
    shopper.page.clock.run_for(31_000)
    expect(time_left).to_contain_text("0:59")
    clock.stop_at(intent.expires_at)
    shopper.page.clock.run_for(60_000)
    _sees_the_way_back(shopper)


def _sees_the_way_back(shopper: Shopper) -> None:
    shopper.sees(words.EXPIRED)
    expect(shopper.page.get_by_role("textbox")).to_have_count(0)
    back = shopper.link("Back to %(merchant)s", merchant="Tripoli Coffee")
    back.click()
    shopper.page.wait_for_url(RETURN_URL)
    assert shopper.visitor.reached == [RETURN_URL]
