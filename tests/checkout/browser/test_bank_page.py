"""Cards that are entered on the bank's page (Plutu, DESIGN §4), within the Content-Security-Policy."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from shared.domain.applications.provider_accounts import ProviderName, set_provider_account
from shared.domain.payment_methods import PaymentMethod
from tests.browser import Visitors
from tests.checkout.browser import page_texts
from tests.checkout.browser.page_server import serving
from tests.checkout.browser.shopper import BANK, Shopper, Shoppers
from tests.checkout.fake_plutu import ACCESS_TOKEN, API_KEY, SECRET_KEY, FakePlutu
from tests.checkout.world import CheckoutWorld

pytestmark = pytest.mark.browser

CREDENTIALS = {"api_key": API_KEY, "access_token": ACCESS_TOKEN, "secret_key": SECRET_KEY}


@pytest.fixture
def plutu() -> Iterator[FakePlutu]:
    with FakePlutu() as made:
        yield made
    assert made.complaints == []


@pytest.fixture
def bank_pages(world: CheckoutWorld, plutu: FakePlutu) -> Iterator[CheckoutWorld]:
    """The checkout's pages, where cards and one wallet are paid through Plutu."""
    world.settings = replace(world.settings, checkout=replace(world.settings.checkout, plutu_url=plutu.url))
    world.use_live_application()
    with world.database.transaction() as connection:
        for method in (PaymentMethod.CARD, PaymentMethod.ADFALI):
            set_provider_account(
                connection,
                world.box,
                world.application.id,
                method,
                provider=ProviderName.PLUTU,
                credentials=CREDENTIALS,
            )
    with serving(world):
        yield world


@pytest.fixture
def shoppers(bank_pages: CheckoutWorld, visitors: Visitors) -> Shoppers:
    return Shoppers(bank_pages, visitors)


def _goes_to_the_bank(shopper: Shopper) -> str:
    """Start a card payment, and return the URL of the bank's page."""
    shopper.choose("card")
    expect(shopper.field("Card number")).to_have_count(0)
    shopper.pay()
    shopper.page.wait_for_url(f"{BANK}**")
    return shopper.page.url


@pytest.mark.parametrize(("lang", "javascript"), [("ar", True), ("en", False)])
def test_card_is_paid_on_the_banks_page(
    bank_pages: CheckoutWorld, shoppers: Shoppers, plutu: FakePlutu, lang: str, javascript: bool
) -> None:
    intent = bank_pages.make_intent()
    shopper = shoppers.come(intent, lang, javascript=javascript)
    shopper.page.goto(plutu.pay(_goes_to_the_bank(shopper)))
    shopper.sees(page_texts.PAID)
    assert bank_pages.status(intent) == "succeeded"
    assert len(plutu.charges) == 1


def test_customer_who_goes_back_from_the_bank_can_continue_there_or_pay_otherwise(
    bank_pages: CheckoutWorld, shoppers: Shoppers, plutu: FakePlutu
) -> None:
    """The page warns before another payment starts."""
    shopper = shoppers.come(bank_pages.make_intent())
    first = _goes_to_the_bank(shopper)
    shopper.page.go_back()
    shopper.sees(page_texts.REDIRECT_OPEN)
    shopper.link("Continue on the bank's page").click()
    expect(shopper.page).to_have_url(first)
    shopper.page.goto(shopper.page.url)
    shopper.page.go_back()
    shopper.sees(page_texts.REDIRECT_OPEN)
    shopper.link("Pay in another way").click()
    expect(shopper.page.get_by_role("main")).to_contain_text(
        shopper.says(
            "You started to pay on the bank's page. If you finished paying there, do not pay again here."
        )
    )
    shopper.pay_by_wallet("adfali", "0921234567")
    shopper.enter_code("1234")
    shopper.sees(page_texts.PAID)
