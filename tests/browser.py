"""A real browser for tests: finds Chromium or installs it, and watches that its pages behave.

Imported once, in tests/conftest.py: each import would be a browser of its own, and Playwright runs one at a time.
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
"""The first has no window to draw, and needs a third of the time; any will do."""
_PACKAGES = (("chromium-headless-shell", "fonts-dejavu-core"), ("chromium", "fonts-dejavu-core"))
"""What to install; the second where Debian is too old to have the first."""
_HOW_TO_GET_IT = (
    "These tests drive Chromium, and none was found. Install it (Debian: apt-get install "
    f"{' '.join(_PACKAGES[0])}; or: .venv/bin/playwright install chromium), so that one of {', '.join(_NAMES)} "
    "is on the PATH."
)
_PATIENCE_MS = 15_000
"""For machines that do much at once."""
_STUB = "<!doctype html><html lang='en'><title>Elsewhere</title><h1>Elsewhere</h1></html>"
_OF_A_STATUS = "Failed to load resource: the server responded with a status of"

DESKTOP = ViewportSize(width=1280, height=900)
PHONE = ViewportSize(width=390, height=844)
SMALL_PHONE = ViewportSize(width=320, height=568)


def find_chromium() -> str | None:
    """The system's, or one that Playwright has downloaded before."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is not None:
        return found
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Before the first test, whose time limit has no room for it."""
    is_wanted = any("browser" in getattr(item, "fixturenames", ()) for item in session.items)
    if not is_wanted or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    for packages in _PACKAGES:
        if find_chromium() is None:
            with capture.global_and_fixture_disabled():
                debian_packages.install(packages, "no Chromium here")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = find_chromium()
    if chromium is None:
        debian_packages.skip_without(_HOW_TO_GET_IT)
    expect.set_options(timeout=_PATIENCE_MS)
    arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium, headless=True, args=arguments)


@pytest.fixture
def visitors(browser: Browser) -> Iterator["Visitors"]:
    """A test that lets a page misbehave fails, whatever else it looked at."""
    made = Visitors(browser)
    yield made
    troubles = made.leave()
    assert troubles == [], "\n".join(troubles)


@dataclass
class Visitor:
    """One person's browser: the tabs share their cookies, and all they do is watched.

    Nothing leaves the machine. Other origins are either `elsewhere`, where a stub answers, or a trouble.
    """

    context: BrowserContext
    origin: str
    elsewhere: tuple[str, ...]
    expected_statuses: frozenset[int]
    reached: list[str] = field(default_factory=list)
    """What was asked for elsewhere, with its whole address."""
    troubles: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Playwright looks at the pattern before it asks us, so that our own requests lose no time.
        self.context.route(re.compile(f"^(?!{re.escape(self.origin)}/)"), self._answer_elsewhere)
        self.context.on("console", self._hear)
        self.context.on("weberror", lambda error: self.troubles.append(f"uncaught: {error.error}"))
        self.context.on("response", self._note_status)

    def open(self, url: str) -> Page:
        """In a tab of its own."""
        page = self.context.new_page()
        page.goto(url)
        return page

    def _answer_elsewhere(self, route: Route) -> None:
        url = route.request.url
        if not url.startswith(self.elsewhere):
            self.troubles.append(f"a request to another origin: {url}")
            route.abort()
            return
        if "referer" in route.request.headers:
            self.troubles.append(f"told {url} where it came from")
        self.reached.append(url)
        route.fulfill(body=_STUB, content_type="text/html")

    def _note_status(self, response: Response) -> None:
        is_expected = response.status in self.expected_statuses and response.request.is_navigation_request()
        if response.status >= 400 and not is_expected:
            self.troubles.append(f"status {response.status}: {response.url}")

    def _hear(self, message: ConsoleMessage) -> None:
        """The browser's own word on a status is told of by `_note_status`."""
        if message.type == "error" and not message.text.startswith(_OF_A_STATUS):
            self.troubles.append(f"console: {message.text}")


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
        elsewhere: tuple[str, ...] = (),
        expected_statuses: frozenset[int] = frozenset(),
    ) -> Visitor:
        """`expected_statuses`: with which of 4xx and 5xx a whole page may be answered."""
        context = self.browser.new_context(
            viewport=viewport,
            color_scheme="dark" if dark else "light",
            java_script_enabled=javascript,
            reduced_motion="reduce",
            # Neither of our languages: what a page speaks is not for the browser to say.
            locale="fr",
        )
        context.set_default_timeout(_PATIENCE_MS)
        self._made.append(Visitor(context, origin, elsewhere, expected_statuses))
        return self._made[-1]

    def leave(self) -> list[str]:
        for visitor in self._made:
            visitor.context.close()
        return [trouble for visitor in self._made for trouble in visitor.troubles]
