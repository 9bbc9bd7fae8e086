"""Every method and outcome of the sandbox (DESIGN §4) as customers see it."""

import pytest
from playwright.sync_api import expect

from tests.checkout.browser import page_texts
from tests.checkout.browser.page_texts import LANGUAGES
from tests.checkout.browser.shopper import WALLETS, SandboxWallet, Shopper, Shoppers
from tests.checkout.world import CheckoutWorld

pytestmark = pytest.mark.browser


def test_a_card_is_paid_with_a_receipt(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    intent = pages.make_intent()
    shopper = shoppers.come(intent)
    shopper.sees(page_texts.READY)
    shopper.pay_by_card("4242424242424242")
    shopper.sees(page_texts.PAID)
    main = shopper.page.get_by_role("main")
    for shown in (intent.reference.upper(), "25.500", "Tripoli Coffee", shopper.says("Bank card")):
        expect(main).to_contain_text(shown)
    expect(shopper.button("Print")).to_be_visible()
    assert pages.status(intent) == "succeeded"
    assert [charge["status"] for charge in pages.charges(intent)] == ["paid"]


def test_declined_cards_say_why_and_another_one_pays(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    intent = pages.make_intent()
    shopper = shoppers.come(intent, "ar")
    for number, sentence, reason in (
        ("4000000000000002", page_texts.DECLINED, "declined"),
        ("4000000000009995", page_texts.NO_MONEY, "insufficient_funds"),
        ("4000000000000259", page_texts.DECLINED, "declined"),
    ):
        shopper.pay_by_card(number)
        shopper.is_told(page_texts.FAILED)
        shopper.is_told(sentence)
        shopper.is_told(page_texts.NOTHING_TAKEN)
        expect(shopper.field("Card number")).to_have_value("")
        assert pages.attempts(intent)[-1] == ("declined", reason)
    shopper.pay_by_card("4242424242424242")
    shopper.sees(page_texts.PAID)
    assert sorted(charge["status"] for charge in pages.charges(intent)) == [*["declined"] * 3, "paid"]


def test_a_local_card_asks_for_a_code(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    intent = pages.make_intent()
    shopper = shoppers.come(intent)
    shopper.pay_by_card("6395 0438 3518 0860")
    _enters_codes(shopper, "222222", "111111")
    assert [charge["status"] for charge in pages.charges(intent)] == ["paid"]


@pytest.mark.parametrize(
    ("wallet", "lang"), list(zip(WALLETS, LANGUAGES, strict=True)), ids=["sadad", "adfali"]
)
def test_a_wallet_pays_with_its_code(
    pages: CheckoutWorld, shoppers: Shoppers, lang: str, wallet: SandboxWallet
) -> None:
    intent = pages.make_intent()
    shopper = shoppers.come(intent, lang)
    shopper.pay_by_wallet(wallet.method, wallet.phone)
    expect(shopper.page.get_by_role("main")).to_contain_text(wallet.phone[-3:])
    _enters_codes(shopper, wallet.wrong, wallet.right)
    assert pages.attempts(intent) == [("paid", None)]
    assert [charge["status"] for charge in pages.charges(intent)] == ["paid"]


def _enters_codes(shopper: Shopper, wrong: str, right: str) -> None:
    shopper.sees(page_texts.CODE)
    shopper.enter_code(wrong)
    shopper.is_told(page_texts.WRONG_CODE)
    shopper.sees(page_texts.CODE)
    shopper.enter_code(right)
    shopper.sees(page_texts.PAID)


def test_processing_page_shows_the_outcome_once_it_is_known(pages: CheckoutWorld, shoppers: Shoppers) -> None:
    """Four customers at once, to save time."""
    ends = {
        "4000000000000077": (page_texts.PAID, "succeeded", "paid"),
        "4000000000000341": (page_texts.READY, "requires_payment_method", "declined"),
    }
    cases = [(number, lang, pages.make_intent()) for number in ends for lang in LANGUAGES]
    waiting = [(shoppers.come(intent, lang), number, intent) for number, lang, intent in cases]
    for shopper, number, _ in waiting:
        shopper.enter_card(number)
        shopper.pay_button.click(no_wait_after=True)
    for shopper, _, intent in waiting:
        shopper.sees(page_texts.PROCESSING)
        assert pages.status(intent) == "processing"
    with pages.verifying():
        for shopper, number, _ in waiting:
            shopper.sees(ends[number][0])
    for shopper, number, intent in waiting:
        _, status, outcome = ends[number]
        assert pages.status(intent) == status
        assert [charge["status"] for charge in pages.charges(intent)] == [outcome]
        if outcome == "declined":
            shopper.is_told(page_texts.DECLINED)
