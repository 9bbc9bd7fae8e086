"""A customer of the demo shop, who chooses products, pays at the checkout, and returns."""

from collections.abc import Mapping
from dataclasses import dataclass

from playwright.sync_api import Page, expect

GOOD_CARD = "4242424242424242"
DECLINED_CARD = "4000000000000002"
_EXPIRY, _SECURITY_CODE = "12/34", "737"


@dataclass(frozen=True, slots=True)
class Shopper:
    page: Page
    shop_url: str

    def choose(self, basket: Mapping[str, int], lang: str = "en") -> None:
        self.page.goto(f"{self.shop_url}/?lang={lang}")
        for product in self.page.locator(".stepper input").all():
            product.fill(str(basket.get(product.get_attribute("name") or "", 0)))

    def order(self) -> None:
        """Place the order and wait for the checkout page."""
        self.page.locator(".checkout button").click()
        self.page.wait_for_url("**/pay/**")

    def fill_card(self, card: str = GOOD_CARD) -> None:
        self.page.locator("input[type=radio][value=card]").check()
        self.page.get_by_label("Card number").fill(card)
        self.page.get_by_label("Expiry date").fill(_EXPIRY)
        self.page.get_by_label("Security code").fill(_SECURITY_CODE)

    def pay(self, card: str = GOOD_CARD) -> None:
        self.fill_card(card)
        self.page.get_by_role("button", name="Pay").click()

    def pay_and_return(self) -> None:
        """Pay, return to the order page, and wait until the order is fulfilled."""
        self.pay()
        self.page.get_by_role("link", name="Return to merchant").click()
        expect(self.page.get_by_text("Your order is ready")).to_be_visible()
