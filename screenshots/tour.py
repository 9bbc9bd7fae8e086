"""The steps of the screenshots: purchases in the demo shop, their payments and webhooks, dashboard and monitor."""

from collections.abc import Mapping
from dataclasses import dataclass

from playwright.sync_api import Page, expect

from screenshots.camera import PHONE, Camera
from screenshots.shopper import DECLINED_CARD, Shopper

_BASKETS: tuple[Mapping[str, int], ...] = (
    {"coffee": 1},
    {"coffee": 2, "maqrood": 1},
    {"tea": 1, "ghraiba": 2},
    {"beans": 1, "dates": 1},
    {"tea": 2},
)
_FAIL, _CORRECT = "Fails with 500", "Correctly: stores it"


@dataclass(frozen=True, slots=True)
class Tour:
    camera: Camera
    addresses: Mapping[str, str]
    demo: Mapping[str, str]

    def take_all(self) -> None:
        self._buy()
        self._checkout_in_arabic()
        self._fail_and_recover()
        self._dashboard()
        self._monitor()

    def _buy(self) -> None:
        shopper = self._shopper()
        for basket in _BASKETS[:-1]:
            shopper.choose(basket)
            shopper.order()
            shopper.pay_and_return()
        self._leave_unpaid(shopper)
        shopper.choose({"coffee": 1, "maqrood": 1})
        self.camera.take(shopper.page, "shop", height=960)
        shopper.order()
        shopper.fill_card()
        self.camera.take(shopper.page, "checkout")
        shopper.pay_and_return()
        expect(shopper.page.get_by_text("Webhook received").first).to_be_visible()
        self.camera.take(shopper.page, "shop-order", height=960)

    def _leave_unpaid(self, shopper: Shopper) -> None:
        shopper.choose(_BASKETS[-1])
        shopper.order()
        shopper.pay(DECLINED_CARD)
        expect(shopper.page.get_by_role("alert").first).to_be_visible()

    def _checkout_in_arabic(self) -> None:
        shopper = Shopper(self.camera.new_page(PHONE), self.addresses["shop_url"])
        shopper.choose({"coffee": 2, "ghraiba": 1}, lang="ar")
        shopper.order()
        self.camera.take(shopper.page, "checkout-arabic")

    def _fail_and_recover(self) -> None:
        """Make a webhook fail twice and succeed at the third try."""
        shopper = self._shopper()
        self._set_endpoint(shopper.page, _FAIL)
        shopper.choose({"dates": 2})
        shopper.order()
        # The shop asks Mizan when the customer returns, so the order does not wait for the webhook.
        shopper.pay_and_return()
        self._wait_for_requests(shopper.page, 2)
        self._set_endpoint(shopper.page, _CORRECT)
        expect(shopper.page.get_by_role("radio", name=_CORRECT)).to_be_checked()

    def _set_endpoint(self, page: Page, behaviour: str) -> None:
        page.goto(f"{self.addresses['shop_url']}/admin?lang=en")
        page.get_by_role("radio", name=behaviour).check()
        page.get_by_role("button", name="Set the response").click()
        expect(page.get_by_role("status")).to_be_visible()

    def _wait_for_requests(self, page: Page, failed: int) -> None:
        failures = page.locator(".seen summary", has_text="500")
        page.goto(f"{self.addresses['shop_url']}/admin?lang=en")
        while failures.count() < failed:
            page.wait_for_timeout(500)
            page.reload()

    def _dashboard(self) -> None:
        url, application = self.addresses["dashboard_url"], self.demo["application_id"]
        page = self._sign_in(url, self.demo["owner_email"], self.demo["owner_password"])
        page.goto(f"{url}/applications/{application}/payments?lang=en")
        self.camera.take(page, "dashboard-payments")
        page.goto(f"{url}/applications/{application}/deliveries?lang=en")
        page.locator("main table a").first.click()
        expect(page.get_by_text("succeeded", exact=False).first).to_be_visible()
        expect(page.get_by_text("500").first).to_be_visible()
        page.reload()
        tries = page.get_by_role("heading", name="Tries")
        self.camera.take(page, "dashboard-delivery", top=page.locator("section, .card", has=tries).last)

    def _monitor(self) -> None:
        url = self.addresses["monitor_url"]
        page = self._sign_in(url, self.demo["operator_email"], self.demo["operator_password"])
        page.goto(f"{url}/?lang=en")
        self.camera.take(page, "monitor")

    def _sign_in(self, url: str, email: str, password: str) -> Page:
        page = self.camera.new_page()
        page.goto(f"{url}/sign-in?lang=en")
        page.get_by_label("Email").fill(email)
        page.get_by_label("Password", exact=True).fill(password)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(lambda address: "/sign-in" not in address)
        return page

    def _shopper(self) -> Shopper:
        return Shopper(self.camera.new_page(), self.addresses["shop_url"])
