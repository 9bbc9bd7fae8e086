"""A keyboard and nothing else: everything is reached by Tab, and shows that it is."""

from typing import Protocol

from playwright.sync_api import Locator, Page

from tests.waiting import eventually

_MOST_STOPS = 60
_IS_FOCUSED = "element => element === document.activeElement"
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
    for _ in range(_MOST_STOPS):
        who.page.keyboard.press("Tab")
        if wanted.evaluate(_IS_FOCUSED):
            eventually(lambda: wanted.evaluate(_LOOK) != before, within=5)
            assert wanted.evaluate(_IS_ON_SCREEN), f"{wanted} has the focus where nobody sees it"
            return
    raise AssertionError(f"Tab does not lead to {wanted}")


def press(who: AtAPage, wanted: Locator, key: str = "Enter") -> None:
    tab_to(who, wanted)
    who.page.keyboard.press(key)


def type_into(who: AtAPage, field: str, text: str) -> None:
    tab_to(who, who.field(field))
    who.page.keyboard.type(text)
