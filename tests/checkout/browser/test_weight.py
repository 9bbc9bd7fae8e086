"""The size of the page. Requests to other hosts fail every test here."""

import pytest
from playwright.sync_api import Response

from tests.browser import Visitors
from tests.checkout.browser.page_states import ready
from tests.checkout.world import CheckoutWorld

pytestmark = pytest.mark.browser

MOST_BYTES = 60 * 1024


def test_page_is_smaller_than_60_kb_in_total(pages: CheckoutWorld, visitors: Visitors) -> None:
    """Uncompressed, in Arabic, which takes more bytes, and with its icon, which headless browsers may not load."""
    visitor = visitors.make(pages.url)
    responses: list[Response] = []

    def note(response: Response) -> None:
        responses.append(response)

    visitor.context.on("response", note)
    page = visitor.open(pages.page(ready(pages)))
    page.wait_for_load_state("networkidle")
    bodies = {response.url: response.body() for response in responses}
    icon = page.locator("link[rel=icon]").evaluate("link => link.href")
    bodies[icon] = visitor.context.request.get(icon).body()
    sizes = {url: len(body) for url, body in bodies.items()}
    assert len(sizes) >= 4, sizes
    assert sum(sizes.values()) < MOST_BYTES, sizes
