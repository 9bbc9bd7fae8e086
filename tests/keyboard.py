"""A keyboard and nothing else: everything is reached by Tab, and shows that it is."""

from typing import Protocol

from playwright.sync_api import Locator, Page

from tests.waiting import eventually

_MOST_STOPS = 60
# Nothing where a live page has put another in its place.
_IS_FOCUSED = "element => element.isConnected ? element === document.activeElement : null"
# Of itself, and of the box around it.
_LOOK = """element => [element, element.parentElement].filter(Boolean)
    .map((shown) => getComputedStyle(shown))
    .map((style) => [style.outlineStyle === "none" ? "" : style.outlineWidth, style.boxShadow, style.borderColor])
    .join(";")"""
_IS_ON_SCREEN = """element => {
    const { top, bottom, left, right } = element.getBoundingClientRect();
    return bottom > 0 && right > 0 && top < innerHeight && left < innerWidth;
}"""


class AtAPage(Protocol):
    @property
    def page(self) -> Page: ...

    def field(self, name: str) -> Locator: ...


def tab_to(who: AtAPage, wanted: Locator) -> None:
    """It has to look different when it has the focus, and to be on the screen then."""
    before = wanted.evaluate(_LOOK)
    element = wanted.element_handle()  # found once: a search by its name takes longer than a key
    for _ in range(_MOST_STOPS):
        who.page.keyboard.press("Tab")
        is_focused = element.evaluate(_IS_FOCUSED)
        if is_focused is None:
            element = wanted.element_handle()
            is_focused = element.evaluate(_IS_FOCUSED)
        if is_focused:
            eventually(lambda: wanted.evaluate(_LOOK) != before, within=15)
            assert wanted.evaluate(_IS_ON_SCREEN), f"{wanted} has the focus where nobody sees it"
            return
    raise AssertionError(f"Tab does not lead to {wanted}")


def press(who: AtAPage, wanted: Locator, key: str = "Enter") -> None:
    tab_to(who, wanted)
    who.page.keyboard.press(key)


def type_into(who: AtAPage, field: str, text: str) -> None:
    tab_to(who, who.field(field))
    who.page.keyboard.type(text)
