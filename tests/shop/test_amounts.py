"""The amounts on each page of the shop, as large as an order can be."""

import pytest
from playwright.sync_api import expect

from examples.shop.orders import MAX_QUANTITY, PRODUCTS
from shared.platform.web.operations_server import serve_operations
from tests.browser import DESKTOP, SMALL_PHONE, Visitors
from tests.page_layout import PHONE, money_problems
from tests.shop.conftest import ShopInTest

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("lang", ["ar", "en"])
def test_the_largest_amounts_fit_in_one_line_with_their_currency(
    shop: ShopInTest, visitors: Visitors, lang: str
) -> None:
    order = shop.buy(**{product.code: str(MAX_QUANTITY) for product in PRODUCTS})
    server = serve_operations(shop.shop.app, "127.0.0.1", 0)
    origin = f"http://127.0.0.1:{server.port}"
    page = visitors.make(origin).open(f"{origin}/?lang={lang}")
    found = []
    for path in ("/", "/orders", order):
        page.goto(f"{origin}{path}")
        if path == "/":
            for product in PRODUCTS:
                page.locator(f"input[name={product.code}]").fill(str(MAX_QUANTITY))
            expect(page.locator(".checkout output")).not_to_be_empty()
        for screen in (SMALL_PHONE, PHONE, DESKTOP):
            page.set_viewport_size(screen)
            found += [f"{path}, {screen['width']} px: {problem}" for problem in money_problems(page)]
    server.close()
    assert not found, "\n".join(found)
