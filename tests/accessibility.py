"""Finds problems of a rendered page: content that cannot be reached on a screen, and violations of axe-core."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from axe_playwright_python.base import AXE_SCRIPT
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, ViewportSize

from tests.browser import DESKTOP, PHONE, SMALL_PHONE

# Lists visible elements that are off the screen, or larger than their box, and cannot be scrolled to. The frame around
# each page may shorten names with an ellipsis: the account and settings pages show them in full.
_FIND_UNREACHABLE = """() => {
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
    if ((left < -1 || right > wide + 1) && !canBeScrolledTo(element)) found.push(`off the screen: ${name(element)}`);
    const style = getComputedStyle(element);
    const isCut = ["hidden", "clip"].includes(style.overflowX) && element.scrollWidth > element.clientWidth + 1
      || ["hidden", "clip"].includes(style.overflowY) && element.scrollHeight > element.clientHeight + 1;
    if (isCut && element.textContent.trim() && !canBeScrolledTo(element)) found.push(`cut off: ${name(element)}`);
  }
  return [...new Set(found)];
}"""
TABLET = ViewportSize(width=820, height=1180)
SCREENS = (SMALL_PHONE, PHONE, TABLET, DESKTOP)
COLOUR_RULES = ("color-contrast", "link-in-text-block")
_SIZE_RULES = ("target-size", "scrollable-region-focusable", "aria-hidden-focus")
APPEARANCE_RULES = (*COLOUR_RULES, *_SIZE_RULES)
"""The rules whose result can depend on the colour scheme and the size of the screen."""
# Layout follows a new size at the end of a frame, and colours may change in a transition.
_SETTLE = """async () => {
  const isChanging = () => document.getAnimations().some((change) => change instanceof CSSTransition);
  do {
    for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
  } while (isChanging());
}"""
_preloaded_axe = Axe("null")
"""Runs the axe-core that `preload_axe` has put on the page."""


@dataclass(frozen=True)
class Appearance:
    """A colour scheme and a screen to check a page with."""

    scheme: Literal["light", "dark"]
    viewport: ViewportSize
    rules: tuple[str, ...] = ()
    """The rules of axe-core to check; all if empty."""

    @property
    def options(self) -> dict[str, Any]:
        # axe-core leaves target-size off by default, but WCAG 2.2 AA requires it.
        only = {"runOnly": {"type": "rule", "values": self.rules}} if self.rules else {}
        return {"reporter": "no-passes", "rules": {"target-size": {"enabled": True}}, **only}


def unreachable_content(page: Page) -> list[str]:
    """Return what cannot be reached on the current screen."""
    found: list[str] = page.evaluate(_FIND_UNREACHABLE)
    return found


def unreachable_content_on(page: Page, name: str, screens: Sequence[ViewportSize]) -> list[str]:
    """Return what cannot be reached on each of `screens`. Resizes the page, and leaves it at the last size."""
    return page_problems(page, name, None, screens)


def page_problems(
    page: Page, name: str, appearance: Appearance | None, screens: Sequence[ViewportSize]
) -> list[str]:
    """Return what axe-core finds with this appearance, and what cannot be reached on any of `screens`.

    Resizes the page, and leaves it at the last size. The screen of `appearance` must be one of `screens`.
    """
    assert appearance is None or appearance.viewport in screens
    page.wait_for_load_state()  # after a form, the text is there before the style
    found = []
    for screen in screens:
        page.set_viewport_size(screen)
        if appearance and appearance.viewport == screen:
            found += axe_violations(page, name, (appearance,))
        found += [f"{name}, {screen['width']} px: {problem}" for problem in unreachable_content(page)]
    return found


def preload_axe(context: BrowserContext) -> None:
    """Put axe-core on each page opened from now on, which is faster than adding it to one page after the other."""
    context.add_init_script(AXE_SCRIPT)


def axe_violations(page: Page, name: str, appearances: tuple[Appearance, ...]) -> list[str]:
    """Return a report for each appearance in which axe-core finds violations. The page keeps the last appearance."""
    found = []
    for appearance in appearances:
        page.emulate_media(color_scheme=appearance.scheme)
        page.set_viewport_size(appearance.viewport)
        page.evaluate(_SETTLE)
        axe = _preloaded_axe if page.evaluate("'axe' in window") else Axe()
        results = axe.run(page, options=appearance.options)
        if results.violations_count:
            found.append(
                f"--- {name}, {appearance.scheme}, {appearance.viewport['width']} px\n{results.generate_report()}"
            )
    return found
