"""Takes screenshots of fixed sizes, so that a new one replaces the old one."""

from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

DESKTOP = ViewportSize(width=1200, height=800)
PHONE = ViewportSize(width=390, height=844)
_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True)
class Camera:
    browser: Browser
    images: Path

    def new_page(self, viewport: ViewportSize = DESKTOP) -> Page:
        """Open a page in a new browser context, with its own cookies."""
        context = self.browser.new_context(viewport=viewport, locale="en", reduced_motion="reduce")
        context.set_default_timeout(_TIMEOUT_MS)
        expect.set_options(timeout=_TIMEOUT_MS)
        return context.new_page()

    def take(self, page: Page, name: str, *, height: int | None = None, top: Locator | None = None) -> None:
        """Save what the window shows, from the top of the page or of `top`, optionally with another height."""
        usual = page.viewport_size
        if height is not None:
            page.set_viewport_size(ViewportSize(width=DESKTOP["width"], height=height))
        page.evaluate("document.activeElement?.blur(); scrollTo(0, 0)")
        if top is not None:
            top.evaluate("element => element.scrollIntoView()")
        page.mouse.move(0, 0)
        path = self.images / f"{name}.png"
        page.screenshot(path=path, animations="disabled", caret="hide")
        if height is not None and usual is not None:
            page.set_viewport_size(usual)
        print(f"  {path.name}  {path.stat().st_size / 1000:.0f} kB", flush=True)
