"""A real browser for tests: finds or installs Chromium, and fails tests whose pages misbehave.

A pytest plugin of tests/conftest.py. Do not import its fixtures: each import would start a browser, and Playwright
runs only one at a time.
"""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Response,
    Route,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests import debian_packages

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""In order of preference: the first draws no window and takes a third of the time."""
_PACKAGES = (("chromium-headless-shell", "fonts-dejavu-core"), ("chromium", "fonts-dejavu-core"))
"""What to install. The second is for Debian releases without the first."""
_INSTALL_HINT = (
    "These tests need Chromium, which was not found. Install it (Debian: apt-get install "
    f"{' '.join(_PACKAGES[0])}; or: .venv/bin/playwright install chromium), so that one of {', '.join(_NAMES)} "
    "is on the PATH."
)
_TIMEOUT_MS = 15_000
"""Generous, for busy machines."""
_STUB = "<!doctype html><html lang='en'><title>Elsewhere</title><h1>Elsewhere</h1></html>"
_STATUS_ERROR = "Failed to load resource: the server responded with a status of"

DESKTOP = ViewportSize(width=1280, height=900)
PHONE = ViewportSize(width=390, height=844)
SMALL_PHONE = ViewportSize(width=320, height=568)


def find_chromium() -> str | None:
    """Return the path of the system's Chromium, or of one that Playwright has downloaded, or None."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is not None:
        return found
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Install Chromium before the first test, because the time limit of a test is too short for it."""
    is_needed = any("browser" in getattr(item, "fixturenames", ()) for item in session.items)
    if not is_needed or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    for packages in _PACKAGES:
        if find_chromium() is None:
            with capture.global_and_fixture_disabled():
                debian_packages.install(packages, "Chromium is missing")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = find_chromium()
    if chromium is None:
        debian_packages.skip_without(_INSTALL_HINT)
    expect.set_options(timeout=_TIMEOUT_MS)
    arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium, headless=True, args=arguments)


@pytest.fixture
def visitors(browser: Browser) -> Iterator["Visitors"]:
    """Create browsers for users. The test fails if any of their pages had a problem."""
    made = Visitors(browser)
    yield made
    problems = made.close()
    assert problems == [], "\n".join(problems)


@dataclass
class Visitor:
    """The browser of one user. Tabs share cookies. Errors, bad statuses and foreign requests become `problems`.

    No request leaves the machine: a stub responds for the origins in `external`, and any other origin is a problem.
    """

    context: BrowserContext
    origin: str
    external: tuple[str, ...]
    expected_statuses: frozenset[int]
    reached: list[str] = field(default_factory=list)
    """The URLs that were requested from external origins."""
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Playwright checks the pattern itself, so that requests to our own origin are not delayed.
        self.context.route(re.compile(f"^(?!{re.escape(self.origin)}/)"), self._answer_external)
        self.context.on("console", self._note_console)
        self.context.on("weberror", lambda error: self.problems.append(f"uncaught: {error.error}"))
        self.context.on("response", self._note_status)

    def open(self, url: str) -> Page:
        """Open `url` in a new tab."""
        page = self.context.new_page()
        page.goto(url)
        return page

    def _answer_external(self, route: Route) -> None:
        url = route.request.url
        if not url.startswith(self.external):
            self.problems.append(f"a request to another origin: {url}")
            route.abort()
            return
        if "referer" in route.request.headers:
            self.problems.append(f"sent a Referer to {url}")
        self.reached.append(url)
        route.fulfill(body=_STUB, content_type="text/html")

    def _note_status(self, response: Response) -> None:
        is_expected = response.status in self.expected_statuses and response.request.is_navigation_request()
        if response.status >= 400 and not is_expected:
            self.problems.append(f"status {response.status}: {response.url}")

    def _note_console(self, message: ConsoleMessage) -> None:
        """Note errors, except those about a status: `_note_status` decides on them."""
        if message.type == "error" and not message.text.startswith(_STATUS_ERROR):
            self.problems.append(f"console: {message.text}")


@dataclass
class Visitors:
    browser: Browser
    _made: list[Visitor] = field(default_factory=list)

    def make(
        self,
        origin: str,
        *,
        viewport: ViewportSize = DESKTOP,
        dark: bool = False,
        javascript: bool = True,
        external: tuple[str, ...] = (),
        expected_statuses: frozenset[int] = frozenset(),
    ) -> Visitor:
        """`expected_statuses` are the 4xx and 5xx statuses that a page itself, not its resources, may have."""
        context = self.browser.new_context(
            viewport=viewport,
            color_scheme="dark" if dark else "light",
            java_script_enabled=javascript,
            reduced_motion="reduce",
            # None of our languages: the browser must not decide the language of a page.
            locale="fr",
        )
        context.set_default_timeout(_TIMEOUT_MS)
        self._made.append(Visitor(context, origin, external, expected_statuses))
        return self._made[-1]

    def close(self) -> list[str]:
        for visitor in self._made:
            visitor.context.close()
        return [problem for visitor in self._made for problem in visitor.problems]
