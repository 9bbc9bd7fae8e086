"""One-time codes in the browser: length checks, the countdown to resend, and changing the number or method."""

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from tests.checkout.browser import page_texts
from tests.checkout.browser.page_states import code_needed
from tests.checkout.browser.shopper import Shoppers
from tests.checkout.world import CheckoutWorld
from tests.clock import Clock

pytestmark = pytest.mark.browser

PAUSE = timedelta(seconds=61)
_CODES_SENT = "select codes_sent from code_challenges"


@pytest.mark.parametrize("javascript", [True, False])
def test_code_of_the_wrong_length_does_not_count_as_a_try(
    pages: CheckoutWorld, shoppers: Shoppers, javascript: bool
) -> None:
    intent = code_needed(pages)
    shopper = shoppers.come(intent, javascript=javascript, expected_statuses=frozenset({422}))
    shopper.enter_code("1111")
    shopper.has_wrong("Verification code", page_texts.CODE_WRONG_LENGTH)
    assert pages.rows("select codes_tried from code_challenges") == [(0,)]
    shopper.enter_code("111111")
    shopper.sees(page_texts.PAID)


def test_resend_button_is_enabled_after_a_countdown(
    pages: CheckoutWorld, shoppers: Shoppers, clock: Clock
) -> None:
    intent = code_needed(pages)
    (sent_at,) = pages.rows("select sent_at from code_challenges")[0]
    clock.stop_at(sent_at)
    shopper = shoppers.come(intent, turns_clock=True)
    again = shopper.button("Send again")
    shopper.page.clock.run_for(15_000)
    expect(shopper.page.get_by_role("main")).to_contain_text("0:45")
    expect(again).to_be_disabled()
    shopper.page.clock.run_for(46_000)
    expect(again).to_be_enabled()
    clock.stop_at(sent_at + PAUSE)
    again.click()
    expect(again).to_be_disabled()
    assert pages.rows(_CODES_SENT) == [(2,)]


def test_resending_a_code_too_soon_without_javascript_is_refused(
    pages: CheckoutWorld, shoppers: Shoppers
) -> None:
    shopper = shoppers.come(code_needed(pages), javascript=False, expected_statuses=frozenset({429}))
    shopper.button("Send again").click()
    shopper.reads(page_texts.SENT_A_MOMENT_AGO)
    shopper.sees(page_texts.CODE)
    assert pages.rows(_CODES_SENT) == [(1,)]


def test_customer_can_change_number_or_method(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    intent = code_needed(pages)
    shopper = shoppers.come(intent, "ar")
    shopper.link("Change number or method").click()
    shopper.sees(page_texts.READY)
    expect(shopper.radio("sadad")).to_be_checked()
    shopper.pay_by_wallet("sadad", "0911234567")
    shopper.sees(page_texts.CODE)
    expect(shopper.page.get_by_role("main")).to_contain_text("567")
    shopper.link("Change number or method").click()
    shopper.pay_by_card("4242424242424242")
    shopper.sees(page_texts.PAID)
    assert [state for state, _ in pages.attempts(intent)] == ["abandoned", "abandoned", "paid"]
    assert [charge["status"] for charge in pages.charges(intent)].count("paid") == 1


def test_customer_can_use_another_card(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    intent = pages.make_intent()
    shopper = shoppers.come(intent, "ar")
    shopper.pay_by_card("6395 0438 3518 0860")
    shopper.sees(page_texts.CODE)
    expect(shopper.button("Send again")).to_be_visible()
    shopper.link("Use another card or method").click()
    shopper.sees(page_texts.READY)
    expect(shopper.radio("card")).to_be_checked()
    shopper.pay_by_card("4242424242424242")
    shopper.sees(page_texts.PAID)
    assert [state for state, _ in pages.attempts(intent)] == ["abandoned", "paid"]


def test_code_stays_valid_if_the_customer_returns_without_another_payment(
    pages: CheckoutWorld, shoppers: Shoppers
) -> None:
    shopper = shoppers.come(code_needed(pages))
    shopper.link("Change number or method").click()
    shopper.sees(page_texts.READY)
    shopper.page.go_back()
    shopper.sees(page_texts.CODE)
    shopper.enter_code("111111")
    shopper.sees(page_texts.PAID)
