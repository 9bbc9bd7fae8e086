"""Every page opens in a real browser with its heading, without errors and without failed requests."""

from urllib.parse import urlsplit

from playwright.sync_api import expect

from services.monitor.app import make_app
from tests.monitor.browser.failing_system import FailingSystem
from tests.monitor.browser.operator_browser import OperatorBrowsers
from tests.monitor.world import PASSWORD, MonitorWorld

_NO_PAGES = {
    "static",
    "console.static",
    "tokens.static",
    "operations.healthz",
    "operations.readyz",
    "operations.metrics",
    # tests/documentation opens its pages; the other is a redirect to the API.
    "documentation.documentation",
    "documentation.reference",
}


def test_every_page_opens(system: FailingSystem, operators: OperatorBrowsers) -> None:
    """In Arabic, the default language. The `visitors` fixture fails the test if a page has an error."""
    who = operators.come("ar", expected_statuses=frozenset({404}))
    who.sees("Sign in")
    who.sign_in(system.world.make_operator(), PASSWORD)
    expect(who.button("Live")).to_be_visible()  # shown by the page's script
    opened = ["/sign-in"]
    for name, path, heading in system.pages(who.says):
        who.open(path)
        expect(who.page.locator("h1")).to_have_text(heading)
        if name != "unknown page":
            opened.append(urlsplit(path).path)
    assert _endpoints(system.world, opened) == _endpoints(system.world), "a page that no smoke test opens"


def _endpoints(world: MonitorWorld, opened: list[str] | None = None) -> set[str]:
    """Return the endpoints of these paths, or of all pages."""
    app = make_app(world.settings, world.service_database, world.inspector)
    if opened is not None:
        return {app.url_map.bind("").match(path)[0] for path in opened}
    pages = {rule.endpoint for rule in app.url_map.iter_rules() if "GET" in (rule.methods or ())}
    return pages - _NO_PAGES
