"""A user with a browser, who finds controls by their accessible names, and may use the keyboard alone."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from playwright.sync_api import Locator, Page, expect

from tests.browser import Visitor
from tests.catalogue import DIRECTIONS, Catalogue
from tests.waiting import eventually


@dataclass(frozen=True)
class BrowserUser:
    catalogue: ClassVar[Catalogue]
    """The texts of the pages, in both languages."""
    page: Page
    visitor: Visitor
    url: str
    lang: str

    def says(self, text: str, **values: str) -> str:
        return self.catalogue.say(self.lang, text, **values)

    def open(self, path: str) -> None:
        self.page.goto(f"{self.url}{path}")

    def field(self, name: str) -> Locator:
        return self.page.get_by_label(self.says(name), exact=True)

    def button(self, name: str, **values: str) -> Locator:
        return self.page.get_by_role("button", name=self.says(name, **values), exact=True)

    def confirm(self, name: str) -> None:
        """Press the button, and the one with the same name in the dialog that asks."""
        self.button(name).click()
        self.page.get_by_role("alertdialog").get_by_role("button", name=self.says(name), exact=True).click()

    def link(self, name: str) -> Locator:
        return self.page.get_by_role("link", name=self.says(name), exact=True)

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    def sees(self, title: str) -> None:
        expect(self.page.get_by_role("heading", level=1, name=self.says(title), exact=True)).to_be_visible()
        html = self.page.locator("html")
        expect(html).to_have_attribute("lang", self.lang)
        expect(html).to_have_attribute("dir", DIRECTIONS[self.lang])

    def reads(self, text: str, **values: str) -> None:
        expect(self.main).to_contain_text(self.says(text, **values))


_MOST_STOPS = 60
# null if a live page has replaced the element.
_IS_FOCUSED = "element => element.isConnected ? element === document.activeElement : null"
# The element's own style, and that of the box around it.
_STYLE = """element => [element, element.parentElement].filter(Boolean)
    .map((shown) => getComputedStyle(shown))
    .map((style) => [style.outlineStyle === "none" ? "" : style.outlineWidth, style.boxShadow, style.borderColor])
    .join(";")"""
_IS_ON_SCREEN = """element => {
    const { top, bottom, left, right } = element.getBoundingClientRect();
    return bottom > 0 && right > 0 && top < innerHeight && left < innerWidth;
}"""


class PageUser(Protocol):
    """What the keyboard helpers need of a user."""

    @property
    def page(self) -> Page: ...

    def field(self, name: str) -> Locator: ...


def tab_to(who: PageUser, wanted: Locator) -> None:
    """Press Tab until `wanted` has the focus. It must then be on the screen and look different than before.

    Fails if 60 presses do not reach it.
    """
    before = wanted.evaluate(_STYLE)
    element = wanted.element_handle()  # found once: finding it by name takes longer than pressing a key
    for _ in range(_MOST_STOPS):
        who.page.keyboard.press("Tab")
        is_focused = element.evaluate(_IS_FOCUSED)
        if is_focused is None:
            element = wanted.element_handle()
            is_focused = element.evaluate(_IS_FOCUSED)
        if is_focused:
            eventually(lambda: wanted.evaluate(_STYLE) != before, within=15)
            assert wanted.evaluate(_IS_ON_SCREEN), f"{wanted} has the focus outside of the screen"
            return
    raise AssertionError(f"Tab does not reach {wanted}")


def press(who: PageUser, wanted: Locator, key: str = "Enter") -> None:
    tab_to(who, wanted)
    who.page.keyboard.press(key)


def type_into(who: PageUser, field: str, text: str) -> None:
    tab_to(who, who.field(field))
    who.page.keyboard.type(text)
