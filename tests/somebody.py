"""Somebody with a browser, who knows the things on a page by their names, as a screen reader does."""

from dataclasses import dataclass
from typing import ClassVar

from playwright.sync_api import Locator, Page, expect

from tests.browser import Visitor
from tests.catalogue import DIRECTIONS, Catalogue


@dataclass(frozen=True)
class Somebody:
    catalogue: ClassVar[Catalogue]
    """What the pages say."""
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
