"""An operator at the monitor with a browser."""

from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Locator

from tests.browser import Visitors
from tests.browser_user import BrowserUser
from tests.monitor.browser.words import CATALOGUE


@dataclass(frozen=True)
class OperatorBrowser(BrowserUser):
    catalogue = CATALOGUE

    def sign_in(self, email: str, password: str) -> None:
        self.field("Email").fill(email)
        self.field("Password").fill(password)
        self.button("Sign in").click()
        self.sees("Overview")

    @property
    def question(self) -> Locator:
        """That the page asks before it does something."""
        return self.page.get_by_role("alertdialog")

    def confirm(self, action: str) -> None:
        """Presses the button, and says yes when asked."""
        self.main.get_by_role("button", name=self.says(action), exact=True).click()
        self.question.get_by_role("button", name=self.says(action), exact=True).click()

    def answer(self, question: str) -> Locator:
        """What the overview answers to it: money, webhooks or stuck."""
        return self.page.locator(f"section[aria-labelledby=answer-{question}]")

    def problem(self, words: str) -> Locator:
        """The way to it, from the overview's list of what is wrong."""
        problems = self.page.get_by_role("region", name=self.says("What is wrong"), exact=True)
        return problems.get_by_role("link", name=words)

    def consumer(self, topic: str) -> Locator:
        """The row of those who consume it, in the list of topics."""
        rows = self.page.get_by_role("region", name=self.says("Consumers"), exact=True).get_by_role("row")
        return rows.filter(has=self.page.get_by_role("rowheader", name=topic))


@dataclass(frozen=True)
class OperatorBrowsers:
    url: str
    visitors: Visitors

    def come(self, lang: str = "en", **browser: Any) -> OperatorBrowser:
        visitor = self.visitors.make(self.url, **browser)
        return OperatorBrowser(visitor.open(f"{self.url}/sign-in?lang={lang}"), visitor, self.url, lang)
