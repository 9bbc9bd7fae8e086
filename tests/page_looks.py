"""What is wrong with a page as it is shown: what cannot be reached on its screen, and what axe-core finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from axe_playwright_python.base import AXE_SCRIPT
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, ViewportSize

from tests.browser import DESKTOP, PHONE, SMALL_PHONE

# Of all that is shown: what lies beside the screen, or is longer than its box, with no way to scroll to it. The frame
# around each page may shorten names with an ellipsis: they stand in full on the pages of the account and the settings.
_OUT_OF_REACH = """() => {
  const wide = document.documentElement.clientWidth;
  const found = [];
  if (document.documentElement.scrollWidth > wide) found.push("the page scrolls sideways");
  const name = (element) => `${element.localName}.${element.className?.baseVal ?? element.className} `
    + `“${element.textContent.trim().slice(0, 40)}”`;
  const scrolls = (element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
  const canBeScrolledTo = (element) => {
    for (let box = element; box && box !== document.body; box = box.parentElement) if (scrolls(box)) return true;
    return false;
  };
  const isShortened = (element) => {
    for (let box = element; box; box = box.parentElement) {
      if (getComputedStyle(box).textOverflow === "ellipsis") return !element.closest("main");
    }
    return false;
  };
  for (const element of document.querySelectorAll("body *:not(svg *)")) {
    const { left, right, width, height } = element.getBoundingClientRect();
    const isShown = width > 1 && height > 1 && element.checkVisibility({ visibilityProperty: true });
    if (!isShown || element.closest(".unseen, .skip, svg") || isShortened(element)) continue;
    if ((left < -1 || right > wide + 1) && !canBeScrolledTo(element)) found.push(`beside the screen: ${name(element)}`);
    const style = getComputedStyle(element);
    const isCut = ["hidden", "clip"].includes(style.overflowX) && element.scrollWidth > element.clientWidth + 1
      || ["hidden", "clip"].includes(style.overflowY) && element.scrollHeight > element.clientHeight + 1;
    if (isCut && element.textContent.trim() && !canBeScrolledTo(element)) found.push(`cut off: ${name(element)}`);
  }
  return [...new Set(found)];
}"""
TABLET = ViewportSize(width=820, height=1180)
SCREENS = (SMALL_PHONE, PHONE, TABLET, DESKTOP)
OF_COLOUR = ("color-contrast", "link-in-text-block")
_OF_SIZE = ("target-size", "scrollable-region-focusable", "aria-hidden-focus")
LOOK_DEPENDENT = (*OF_COLOUR, *_OF_SIZE)
"""What a change of colours and size can change."""
# What follows the size of things follows it at the end of a frame, and colours may change slowly.
_SETTLE = """async () => {
  const isChanging = () => document.getAnimations().some((change) => change instanceof CSSTransition);
  do {
    for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
  } while (isChanging());
}"""
_is_there = Axe("null")
"""Runs what is on the page already."""


@dataclass(frozen=True)
class Look:
    scheme: Literal["light", "dark"]
    viewport: ViewportSize
    rules: tuple[str, ...] = ()
    """Those whose answer can differ from the first look's; none for all."""

    @property
    def options(self) -> dict[str, Any]:
        # target-size is off in axe-core by itself, but asked for by WCAG 2.2 AA.
        only = {"runOnly": {"type": "rule", "values": self.rules}} if self.rules else {}
        return {"reporter": "no-passes", "rules": {"target-size": {"enabled": True}}, **only}


def out_of_reach(page: Page) -> list[str]:
    """On the screen that it has."""
    found: list[str] = page.evaluate(_OUT_OF_REACH)
    return found


def out_of_reach_on(page: Page, name: str, screens: Sequence[ViewportSize]) -> list[str]:
    """The page is resized, not loaded again, and is left on the last screen."""
    return page_troubles(page, name, None, screens)


def page_troubles(page: Page, name: str, look: Look | None, screens: Sequence[ViewportSize]) -> list[str]:
    """What axe-core finds with this look, on its screen, and what is out of reach on any screen.

    The page is resized, not loaded again, and is left on the last screen. The look's has to be one of them.
    """
    assert look is None or look.viewport in screens
    page.wait_for_load_state()  # what a form has led to can be read before its style is there
    found = []
    for screen in screens:
        page.set_viewport_size(screen)
        if look and look.viewport == screen:
            found += axe_troubles(page, name, (look,))
        found += [f"{name}, {screen['width']} px: {trouble}" for trouble in out_of_reach(page)]
    return found


def bring_axe(context: BrowserContext) -> None:
    """Onto each page that is opened from now on: quicker, for many pages, than onto one after the other."""
    context.add_init_script(AXE_SCRIPT)


def axe_troubles(page: Page, name: str, looks: tuple[Look, ...]) -> list[str]:
    """The page is left with the last look."""
    found = []
    for look in looks:
        page.emulate_media(color_scheme=look.scheme)
        page.set_viewport_size(look.viewport)
        page.evaluate(_SETTLE)
        axe = _is_there if page.evaluate("'axe' in window") else Axe()
        results = axe.run(page, options=look.options)
        if results.violations_count:
            found.append(
                f"--- {name}, {look.scheme}, {look.viewport['width']} px\n{results.generate_report()}"
            )
    return found
