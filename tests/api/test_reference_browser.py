"""The reference page in a browser: code can be copied and is never cut off."""

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient
from playwright.sync_api import expect

from shared.platform.web.operations_server import serve_operations
from tests.browser import Visitors

_CUT_OFF = """() => [...document.querySelectorAll("pre, html")].filter(
    (one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent.slice(0, 80))"""


@pytest.fixture
def origin(client: FlaskClient) -> Iterator[str]:
    server = serve_operations(client.application, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.port}"
    server.close()


@pytest.mark.parametrize("lang", ["ar", "en"])
def test_code_is_copied_and_never_cut_off(origin: str, visitors: Visitors, lang: str) -> None:
    """On phones and desks. Each block of code has a button that copies all of it."""
    visitor = visitors.make(origin)
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=origin)
    page = visitor.open(f"{origin}/docs?lang={lang}")
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(_CUT_OFF) == []
    copy = page.get_by_role("button", name="Copy" if lang == "en" else "نسخ")
    expect(copy).to_have_count(page.locator("pre").count())
    copy.first.click()
    expect(page.get_by_role("button", name="Copied" if lang == "en" else "تم النسخ")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("pre").first.text_content()
