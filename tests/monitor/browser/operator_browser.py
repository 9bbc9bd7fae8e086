"""An operator who uses the monitor with a browser."""

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
        """The confirmation dialog."""
        return self.page.get_by_role("alertdialog")

    def confirm(self, action: str) -> None:
        """Press the button, and confirm in the dialog."""
        self.main.get_by_role("button", name=self.says(action), exact=True).click()
        self.question.get_by_role("button", name=self.says(action), exact=True).click()

    def answer(self, question: str) -> Locator:
        """Return the section of the overview that answers this question: payments, webhooks or stuck."""
        return self.page.locator(f"section[aria-labelledby=answer-{question}]")

    def problem(self, words: str) -> Locator:
        """Return the link to a problem in the overview's list."""
        problems = self.page.get_by_role("region", name=self.says("What is wrong"), exact=True)
        return problems.get_by_role("link", name=words)

    def consumer(self, topic: str) -> Locator:
        """Return the row of the topic's consumer group on the topics page."""
        rows = self.page.get_by_role("region", name=self.says("Consumers"), exact=True).get_by_role("row")
        return rows.filter(has=self.page.get_by_role("rowheader", name=topic))


@dataclass(frozen=True)
class OperatorBrowsers:
    url: str
    visitors: Visitors

    def come(self, lang: str = "en", **browser: Any) -> OperatorBrowser:
        visitor = self.visitors.make(self.url, **browser)
        return OperatorBrowser(visitor.open(f"{self.url}/sign-in?lang={lang}"), visitor, self.url, lang)
