"""The shop on a whole stack: real services, a real browser, and webhooks that need several tries."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import uuid4

import psycopg
import pytest
import requests
from playwright.sync_api import Page, ViewportSize, expect

from tests.accessibility import APPEARANCE_RULES, Appearance, axe_violations, unreachable_content
from tests.browser import DESKTOP, PHONE, SMALL_PHONE, Visitors
from tests.checkout.customer import Customer
from tests.databases import Databases
from tests.engines import TestEngines
from tests.page_client import page_text
from tests.stack.running_stack import RunningStack, whole_stack
from tests.stack_payments import GOOD_CARD
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]
_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')
_LINK_TO_AN_ORDER = re.compile(r'href="(/orders/[\w-]+)"')
# All rules once, then those that depend on colours and size: a page has the same structure in both languages.
_APPEARANCES = {"ar": Appearance("light", SMALL_PHONE), "en": Appearance("dark", DESKTOP, APPEARANCE_RULES)}
_SHOP_AND_CHECKOUT = "http:/"
"""A prefix of both origins: the customer goes from one to the other."""
_SCREENS: tuple[ViewportSize, ...] = (SMALL_PHONE, PHONE, DESKTOP)


@pytest.fixture(scope="module")
def stack(
    engines: TestEngines, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningStack]:
    """A stack that retries webhooks after one second instead of ten."""
    directory = tmp_path_factory.mktemp("shop") / "stack"
    database = databases.take()
    engine_urls = engines, databases.url(database), f"t{uuid4().hex[:8]}."
    with whole_stack(directory, *engine_urls, WEBHOOK_RETRY_DELAYS="1,1,1,1,1,1,1,1") as running:
        yield running
    databases.drop(database)


@dataclass
class Buyer:
    """A customer without a browser, who can also open the admin pages."""

    shop_url: str
    session: requests.Session = field(default_factory=requests.Session)

    def buy(self) -> "Order":
        self.submit("/", "/orders", coffee="1")
        link = _LINK_TO_AN_ORDER.search(self.read("/orders"))
        assert link is not None
        return Order(self, link[1])

    def submit(self, page: str, to: str, **fields: str) -> requests.Response:
        """Submit a form of that page. The redirect is not followed."""
        data = {**dict(_HIDDEN.findall(self.read(page))), **fields}
        answer = self.session.post(f"{self.shop_url}{to}", data=data, timeout=30, allow_redirects=False)
        assert answer.status_code == 303, answer.text
        return answer

    def read(self, path: str) -> str:
        answer = self.session.get(f"{self.shop_url}{path}", timeout=30)
        assert answer.ok, answer.text
        return answer.text

    def make_endpoint(self, behaviour: str) -> None:
        self.submit("/admin", "/admin/switch", behaviour=behaviour)

    def admin(self) -> str:
        return page_text(self.read("/admin?lang=en"))


@dataclass(frozen=True)
class Order:
    buyer: Buyer
    path: str

    @property
    def state(self) -> str:
        found = re.search(r'data-state="(\w+)"', self.buyer.read(self.path))
        assert found is not None
        return found[1]

    def pay(self) -> None:
        """Pay with the button of the order page."""
        checkout = self.buyer.submit(self.path, f"{self.path}/pay").headers["Location"]
        assert "/pay/" in checkout
        customer = Customer(checkout)
        customer.pay_by_card(GOOD_CARD)
        customer.close()

    def intent(self, stack: RunningStack) -> str:
        with psycopg.connect(stack.read()["database_url"]) as connection:
            row = connection.execute(
                "select uuid from payment_intents where return_url like %s order by uuid desc",
                (f"%{self.path}/return",),
            ).fetchone()
        assert row is not None
        return str(row[0])


@pytest.fixture
def buyer(stack: RunningStack) -> Iterator[Buyer]:
    made = Buyer(stack.read()["shop_url"])
    yield made
    made.make_endpoint("good")
    made.session.close()


@pytest.mark.browser
def test_order_page_shows_every_step_of_a_purchase_live(stack: RunningStack, visitors: Visitors) -> None:
    """Cart, checkout, payment, webhook, fulfilled: without a reload."""
    shop_url = stack.read()["shop_url"]
    visitor = visitors.make(_SHOP_AND_CHECKOUT)
    page = visitor.open(f"{shop_url}/?lang=en")
    page.get_by_role("button", name="One Maqrood more").click()
    expect(page.get_by_text("10.500 LYD")).to_be_visible()
    page.get_by_role("button", name="Order and pay").click()
    page.get_by_role("radio", name="Bank card").check()
    page.get_by_label("Card number").fill(GOOD_CARD)
    page.get_by_label("Expiry date").fill("12/34")
    page.get_by_label("Security code").fill("737")

    order = visitor.open(f"{shop_url}/orders")
    order.get_by_role("link", name="Order").filter(has_text="unpaid").first.click()
    expect(order.get_by_role("heading", level=1)).to_have_text("Waiting for your payment")
    order.evaluate("window.isTheSamePage = true")
    page.get_by_role("button", name="Pay").click()
    expect(order.get_by_role("heading", level=1)).to_have_text("Your order is ready. Enjoy!", timeout=40_000)
    expect(order.get_by_text("signature ok")).to_be_visible()
    expect(order.locator("[data-step].done")).to_have_count(7)
    assert order.evaluate("window.isTheSamePage")
    # The receipt page redirects by itself after a while.
    arrived = page.get_by_role("heading", name="Your order is ready")
    page.get_by_role("link", name="Return to merchant").or_(arrived).click()
    page.wait_for_url(order.url)


def test_failing_endpoint_is_retried_until_it_responds(stack: RunningStack, buyer: Buyer) -> None:
    """After each kind of error, with the same delivery."""
    order = buyer.buy()
    buyer.make_endpoint("redirect")
    order.pay()
    eventually(lambda: "answered 302" in buyer.admin())
    buyer.make_endpoint("fail")
    eventually(lambda: "answered 500" in buyer.admin())
    assert order.state == "unpaid"
    buyer.make_endpoint("good")
    eventually(lambda: order.state == "fulfilled")
    intent = order.intent(stack)
    with psycopg.connect(stack.read()["database_url"], autocommit=True) as connection:

        def tries_of_the_delivery_that_succeeded() -> int:
            """Return 0 until the response of the shop is recorded."""
            row = connection.execute(
                "select tries from webhook_deliveries where intent_uuid = %s and status = 'succeeded'",
                (intent,),
            ).fetchone()
            return row[0] if row else 0

        assert eventually(tries_of_the_delivery_that_succeeded) >= 3


def test_expired_order_is_paid_again(stack: RunningStack, buyer: Buyer) -> None:
    order = buyer.buy()
    first = order.intent(stack)
    with psycopg.connect(stack.read()["database_url"]) as connection:
        connection.execute(
            "update payment_intents set expires_at = now() - interval '1 second' where uuid = %s", (first,)
        )
    eventually(lambda: order.state == "expired")
    order.pay()
    eventually(lambda: order.state == "fulfilled")
    assert order.intent(stack) != first


def test_return_fulfils_if_no_webhook_arrives(buyer: Buyer) -> None:
    buyer.make_endpoint("unauthorized")
    order = buyer.buy()
    order.pay()
    buyer.read(f"{order.path}/return")
    assert order.state == "fulfilled"


def test_shop_asks_for_the_new_secret_after_a_roll(stack: RunningStack, buyer: Buyer) -> None:
    """Mizan retries webhooks that the shop refused meanwhile, so nothing is lost."""
    rolled = stack.mizan("app", "roll-secret", stack.read()["demo"]["application_id"], "--json")
    order = buyer.buy()
    order.pay()
    eventually(lambda: "paste the new one below" in buyer.admin())
    buyer.submit("/admin", "/admin/secret", secret=rolled["webhook_secret"])
    eventually(lambda: order.state == "fulfilled")


@pytest.mark.browser
def test_every_page_is_accessible(stack: RunningStack, buyer: Buyer, visitors: Visitors) -> None:
    """axe-core finds no violations in light or dark mode, and all content is reachable from a width of 320 px."""
    shop_url = stack.read()["shop_url"]
    unpaid = buyer.buy()
    visitor = visitors.make(shop_url, expected_statuses=frozenset({404}))
    page = visitor.open(shop_url)
    found: list[str] = []
    for lang, direction in (("ar", "rtl"), ("en", "ltr")):
        for path in ("/", unpaid.path, "/orders", "/admin", "/nowhere"):
            page.goto(f"{shop_url}{path}?lang={lang}")
            assert page.evaluate("[document.documentElement.lang, document.documentElement.dir]") == [
                lang,
                direction,
            ]
            found += axe_violations(page, f"{path} in {lang}", (_APPEARANCES[lang],))
            found += [f"{path} in {lang}: {problem}" for problem in _unreachable_on_any_screen(page)]
    assert not found, "\n".join(found)
    page.goto(shop_url)
    assert page.evaluate("document.documentElement.lang") == "en", "the language is not remembered"


@pytest.mark.browser
def test_purchase_works_without_javascript(stack: RunningStack, visitors: Visitors) -> None:
    shop_url = stack.read()["shop_url"]
    visitor = visitors.make(shop_url, javascript=False, external=(stack.read()["checkout_url"],))
    page = visitor.open(f"{shop_url}/?lang=en")
    page.get_by_label("Quantity of Ghraiba").fill("2")
    page.get_by_role("button", name="Order and pay").press("Enter")
    page.wait_for_url("**/pay/**")


def _unreachable_on_any_screen(page: Page) -> list[str]:
    found: list[str] = []
    for screen in _SCREENS:
        page.set_viewport_size(screen)
        found += unreachable_content(page)
    return found
