"""Opens each page of the shop in a browser. Console errors and failed requests fail the test (tests/browser.py)."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from examples.shop.database import Database
from examples.shop.texts import translate
from shared.platform.web.operations_server import serve_operations
from tests.browser import Visitors
from tests.catalogue import DIRECTIONS
from tests.shop.conftest import ShopInTest


@pytest.fixture
def origin(shop: ShopInTest) -> Iterator[str]:
    server = serve_operations(shop.shop.app, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.port}"
    server.close()


def _sees(page: Page, heading: str, lang: str = "en") -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(translate(heading, lang))
    expect(page.locator("html")).to_have_attribute("lang", lang)
    expect(page.locator("html")).to_have_attribute("dir", DIRECTIONS[lang])


def test_every_page_opens(shop: ShopInTest, origin: str, visitors: Visitors) -> None:
    """From the menu to the fulfilled order, whose page updates itself; then the admin and error pages."""
    shop.mizan.checkout = shop.mizan.origin
    visitor = visitors.make(
        origin, external=(shop.mizan.origin,), expected_statuses=frozenset({404, 422, 500})
    )
    page = visitor.open(f"{origin}/?lang=en")
    _sees(page, "welcome")
    page.get_by_label("Quantity of Arabic coffee").fill("0")
    page.get_by_role("button", name="Order and pay").click()
    expect(page.get_by_role("alert")).to_have_text("Choose at least one thing.")
    page.get_by_role("button", name="One Maqrood more").click()
    expect(page.get_by_role("status")).to_have_text("6.500 LYD")
    page.get_by_role("button", name="Order and pay").click()
    page.wait_for_url(f"{shop.mizan.checkout}/pay/*")

    page.goto(f"{origin}/orders")
    _sees(page, "orders_title")
    page.get_by_role("link", name="Order").filter(has_text="unpaid").click()
    _sees(page, "state_unpaid")
    page.evaluate("window.isTheSamePage = true")
    shop.mizan.only_intent()["status"] = "succeeded"
    shop.send_event()
    shop.work()
    _sees(page, "state_fulfilled")
    assert page.evaluate("window.isTheSamePage")

    page.goto(f"{origin}/admin")
    _sees(page, "admin_title")
    expect(page.get_by_role("main")).to_contain_text("answered 200")
    page.goto(f"{origin}/nowhere?lang=ar")
    _sees(page, "not_found_title", "ar")
    with Database(shop.settings.database).transaction() as connection:
        connection.execute("alter table orders rename to gone")
    page.goto(f"{origin}/orders")
    _sees(page, "error_title", "ar")
