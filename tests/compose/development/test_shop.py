"""Buying a coffee with a browser: cart, checkout, paid, webhook, fulfilled."""

import re

from playwright.sync_api import Browser, expect

from tests.compose.installation import GOOD_CARD, Installation


def test_coffee_is_bought_and_fulfilled(mizan: Installation, browser: Browser) -> None:
    """§6.5: the order is fulfilled after the webhook and a request for the intent. Its page shows each step."""
    context = browser.new_context(locale="fr")
    page = context.new_page()
    page.goto(f"{mizan.project.url('SHOP_PORT')}/?lang=en")
    page.locator("form.menu button.primary").click()
    page.get_by_role("radio", name="Bank card").check()
    page.get_by_label("Card number").fill(GOOD_CARD)
    page.get_by_label("Expiry date").fill("12/34")
    page.get_by_label("Security code").fill("737")
    page.get_by_role("button", name="Pay").click()
    page.get_by_role("link", name=re.compile("Back to|Return to")).click()
    expect(page.locator("[data-state=fulfilled]")).to_be_visible(timeout=60_000)
    expect(page.locator("[data-step=webhook].done")).to_be_visible(timeout=60_000)
    context.close()
