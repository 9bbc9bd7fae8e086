"""The site in a browser: it searches without the internet, and the content policy blocks nothing that it needs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from shared.platform.web.app import create_app
from shared.platform.web.documentation import documentation_blueprint
from shared.platform.web.operations_server import serve_operations
from tests.browser import Visitors


@pytest.fixture
def origin(site: Path) -> Iterator[str]:
    app = create_app("api", {})
    app.register_blueprint(documentation_blueprint(site))
    server = serve_operations(app, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.port}"
    server.close()


@pytest.mark.parametrize(
    ("lang", "text", "found"),
    [("en", "idempotency", "Idempotency"), ("ar", "منع التكرار", "منع التكرار")],
)
def test_search_leads_to_a_page(origin: str, visitors: Visitors, lang: str, text: str, found: str) -> None:
    """The `visitors` fixture fails the test for errors of the page, also for what the policy refused."""
    page = visitors.make(origin).open(f"{origin}/docs/{lang}/")
    assert page.locator("body").get_attribute("dir") == {"en": "ltr", "ar": "rtl"}[lang]
    page.keyboard.press("/")
    page.get_by_role("combobox").fill(text)
    page.get_by_role("option", name=found).first.click()
    expect(page.locator("h1")).to_contain_text(found)
