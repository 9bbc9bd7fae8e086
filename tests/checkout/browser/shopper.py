"""A customer with a browser who finds elements by their accessible names."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from playwright.sync_api import Locator, Page, Request, ViewportSize, expect

from shared.domain.intents.intent import Intent
from tests.browser import DESKTOP, Visitor, Visitors
from tests.checkout.browser.page_texts import DIRECTIONS, say
from tests.checkout.world import CheckoutWorld

SHOP = "https://shop.example.ly/"
BANK = "https://pages.plutu.example/"
METHODS = {"card": "Bank card", "sadad": "Sadad", "adfali": "Adfali"}


@dataclass(frozen=True)
class SandboxWallet:
    """A wallet of the sandbox, with a right code and a wrong one."""

    method: str
    phone: str
    right: str
    wrong: str


WALLETS = (
    SandboxWallet("sadad", "0913632323", right="111111", wrong="222222"),
    SandboxWallet("adfali", "0921234567", right="1111", wrong="2222"),
)


@dataclass(frozen=True)
class Shopper:
    page: Page
    visitor: Visitor
    lang: str

    def says(self, text: str, **values: str) -> str:
        """Return the text in this customer's language."""
        return say(self.lang, text, **values)

    def field(self, name: str) -> Locator:
        return self.page.get_by_role("textbox", name=self.says(name), exact=True)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=self.says(name), exact=True)

    def link(self, name: str, **values: str) -> Locator:
        return self.page.get_by_role("link", name=self.says(name, **values), exact=True)

    def radio(self, method: str) -> Locator:
        return self.page.get_by_role("radio", name=self.says(METHODS[method]), exact=True)

    @property
    def pay_button(self) -> Locator:
        return self.page.get_by_role(
            "button", name=re.compile(self.says("Pay %(amount)s", amount=r".*25\.500.*"))
        )

    @property
    def alert(self) -> Locator:
        return self.page.get_by_role("alert").filter(visible=True)

    def title(self, title: str) -> Locator:
        return self.page.get_by_role("heading", level=1, name=self.says(title), exact=True)

    def sees(self, title: str) -> None:
        """Wait for the page with this title, in this customer's language."""
        expect(self.title(title)).to_be_visible()
        html = self.page.locator("html")
        expect(html).to_have_attribute("lang", self.lang)
        expect(html).to_have_attribute("dir", DIRECTIONS[self.lang])

    def is_told(self, sentence: str) -> None:
        expect(self.alert).to_contain_text(self.says(sentence))

    def reads(self, sentence: str) -> None:
        expect(self.page.get_by_role("main")).to_contain_text(self.says(sentence))

    def has_wrong(self, field: str, sentence: str) -> None:
        expect(self.field(field)).to_have_attribute("aria-invalid", "true")
        expect(self.field(field)).to_have_accessible_description(re.compile(re.escape(self.says(sentence))))

    def has_right(self, field: str) -> None:
        expect(self.field(field)).not_to_have_attribute("aria-invalid", "true")

    def choose(self, method: str) -> None:
        self.radio(method).check()

    def enter_card(self, number: str, expiry: str = "12/34", security_code: str = "737") -> None:
        self.choose("card")
        self.field("Card number").fill(number)
        self.field("Expiry date").fill(expiry)
        self.field("Security code").fill(security_code)

    def enter_wallet(self, method: str, phone: str, birth_year: str = "1999") -> None:
        self.choose(method)
        self.field("Phone number").fill(phone)
        if method == "sadad":
            self.field("Birth year").fill(birth_year)

    def pay(self) -> None:
        self.pay_button.click()

    def pay_by_card(self, number: str, **rest: str) -> None:
        self.enter_card(number, **rest)
        self.pay()

    def pay_by_wallet(self, method: str, phone: str, **rest: str) -> None:
        self.enter_wallet(method, phone, **rest)
        self.pay()

    def enter_code(self, code: str) -> None:
        self.field("Verification code").fill(code)
        self.button("Confirm").click()

    @contextmanager
    def noting_posts(self) -> Iterator[list[str]]:
        """Yield a list of the paths that the page posts to."""
        posts: list[str] = []

        def note(request: Request) -> None:
            if request.method == "POST":
                posts.append(urlsplit(request.url).path)

        self.page.on("request", note)
        yield posts
        self.page.remove_listener("request", note)


@dataclass(frozen=True)
class Shoppers:
    world: CheckoutWorld
    visitors: Visitors

    def come(
        self,
        intent: Intent | str,
        lang: str = "en",
        *,
        viewport: ViewportSize = DESKTOP,
        javascript: bool = True,
        turns_clock: bool = False,
        dark: bool = False,
        expected_statuses: frozenset[int] = frozenset(),
    ) -> Shopper:
        """Open the page of an intent, or an address, as a new customer.

        `turns_clock`: the test controls the clock and the timers of the page.
        """
        visitor = self.visitors.make(
            self.world.url,
            viewport=viewport,
            dark=dark,
            javascript=javascript,
            external=(SHOP, BANK),
            expected_statuses=expected_statuses,
        )
        if turns_clock:
            visitor.context.clock.install()
        url = intent if isinstance(intent, str) else self.address(intent, lang)
        return Shopper(visitor.open(url), visitor, lang)

    def lead(self, shopper: Shopper, intent: Intent) -> None:
        """Open another intent in the same tab, which is much faster than a new one."""
        shopper.page.goto(self.address(intent, shopper.lang))

    def address(self, intent: Intent, lang: str) -> str:
        """Return the link as merchants send it: without a language it is Arabic."""
        return self.world.page(intent, None if lang == "ar" else lang)
