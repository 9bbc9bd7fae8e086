"""Members of a merchant who use the dashboard with a browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Request, expect

from shared.domain.accounts.roles import Role
from tests.browser import Visitors
from tests.browser_user import BrowserUser
from tests.dashboard.browser.texts import CATALOGUE
from tests.dashboard.world import PASSWORD, DashboardWorld, Merchant

_READ_CLIPBOARD = "navigator.clipboard.readText()"


@dataclass(frozen=True)
class Colleague(BrowserUser):
    catalogue = CATALOGUE

    def sign_in(self, email: str, password: str) -> None:
        self.field("Email").fill(email)
        self.field("Password").fill(password)
        self.button("Sign in").click()
        self.sees("Applications")

    def sign_out(self) -> None:
        self.button("Sign out").click()
        self.sees("Sign in")

    @contextmanager
    def noting(self, *, parts: bool = False) -> Iterator[list[str]]:
        """Yield a list of the paths that the page posts to, or of the partials that its script requests."""
        noted: list[str] = []

        def note(request: Request) -> None:
            if "x-part" in request.headers if parts else request.method == "POST":
                noted.append(urlsplit(request.url).path)

        self.page.on("request", note)
        yield noted
        self.page.remove_listener("request", note)

    def copy(self, what: str) -> str:
        """Press the copy button beside the value, and return the copied text."""
        self.button("Copy: %(what)s", what=self.says(what)).click()
        expect(self.main).to_contain_text(self.says("Copied"))
        copied: str = self.page.evaluate(_READ_CLIPBOARD)
        return copied


@dataclass(frozen=True)
class Colleagues:
    url: str
    visitors: Visitors

    def come(self, path: str = "/sign-in", lang: str = "en", **browser: Any) -> Colleague:
        visitor = self.visitors.make(self.url, **browser)
        visitor.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=self.url)
        page = visitor.open(f"{self.url}{path}{'&' if '?' in path else '?'}lang={lang}")
        return Colleague(page, visitor, self.url, lang)

    def come_in(
        self,
        world: DashboardWorld,
        role: Role = Role.OWNER,
        lang: str = "en",
        *,
        merchant: Merchant | None = None,
        **browser: Any,
    ) -> Colleague:
        """Return a new member's browser, signed in."""
        who = self.come(lang=lang, **browser)
        who.sign_in(world.make_member(role, merchant), PASSWORD)
        return who
