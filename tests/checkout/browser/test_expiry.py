"""A link expires while its page is open: the page says so and links back to the merchant."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.checkout.browser import page_texts
from tests.checkout.browser.shopper import Shoppers
from tests.checkout.world import RETURN_URL, CheckoutWorld
from tests.clock import Clock

pytestmark = pytest.mark.browser


def test_end_time_is_shown_until_the_last_hour(
    pages: CheckoutWorld, shoppers: Shoppers, clock: Clock
) -> None:
    """In Libyan time. Then the open page counts down."""
    end = datetime(2027, 3, 1, 18, 30, tzinfo=UTC)
    clock.stop_at(end - timedelta(hours=1, seconds=5))
    intent = pages.make_intent(expires_at=end)
    shopper = shoppers.come(intent, turns_clock=True)
    time_left = shopper.page.get_by_role("timer")
    until = time_left.get_by_text("Pay before 1 March 2027, 20:30")
    left = time_left.get_by_text("Time left")
    expect(until).to_be_visible()
    expect(left).to_be_hidden()
    shopper.page.clock.run_for(3_000)
    expect(left).to_be_hidden()
    shopper.page.clock.run_for(8_000)
    expect(until).to_be_hidden()
    expect(left).to_contain_text("59:5")


def test_open_page_counts_down_and_expires(pages: CheckoutWorld, shoppers: Shoppers, clock: Clock) -> None:
    intent = pages.make_intent()
    clock.stop_at(intent.expires_at - timedelta(seconds=90))
    shopper = shoppers.come(intent, turns_clock=True)
    time_left = shopper.page.get_by_role("timer")
    expect(time_left).to_contain_text("1:30")
    expect(time_left).not_to_contain_text("Pay before")
    shopper.page.clock.run_for(31_000)
    expect(time_left).to_contain_text("0:59")
    clock.stop_at(intent.expires_at)
    shopper.page.clock.run_for(60_000)
    shopper.sees(page_texts.EXPIRED)
    expect(shopper.page.get_by_role("textbox")).to_have_count(0)
    shopper.link("Return to merchant").click()
    shopper.page.wait_for_url(RETURN_URL)
    assert shopper.visitor.reached == [RETURN_URL]
