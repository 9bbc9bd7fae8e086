"""Test applications pay at the sandbox only, live ones at their own accounts only, and every page says which it is."""

import pytest

from shared.domain.applications.provider_accounts import (
    NotLiveError,
    ProviderName,
    set_provider_account,
)
from shared.domain.payment_methods import PaymentMethod
from tests.checkout.browser.page_states import SHOWN
from tests.checkout.browser.page_texts import LANGUAGES
from tests.checkout.world import CheckoutWorld
from tests.page_client import page_text

GOOD_CARD = "4242424242424242"
CREDENTIALS = {"api_key": "k", "access_token": "t", "secret_key": "s"}
BANNERS = {"ar": "دفعة تجريبية: لن يُخصم أي مبلغ.", "en": "Test payment: no money moves."}


def test_every_page_of_a_test_application_says_so(pages: CheckoutWorld, subtests: pytest.Subtests) -> None:
    for shown in SHOWN:
        with subtests.test(shown.name):
            intent = shown.make(pages)
            for lang in LANGUAGES:
                html = pages.customer(intent, lang).answer.text
                assert BANNERS[lang] in page_text(html)
                assert '<body data-mode="test">' in html


def test_live_application_is_never_paid_in_the_sandbox(pages: CheckoutWorld) -> None:
    """Not even with an account of the sandbox, which earlier versions could make."""
    form = pages.customer(pages.make_intent()).answer.text
    pages.use_live_application()
    with pages.database.transaction() as connection:
        connection.execute(
            "insert into provider_accounts (application_id, method, adapter) values (%s, 'card', 'sandbox')",
            (pages.application.id,),
        )
    intent = pages.make_intent()
    customer = pages.customer(intent)
    assert "Card number" in page_text(form)
    assert "Card number" not in customer.text
    assert BANNERS["en"] not in customer.text
    assert '<body data-mode="live">' in customer.answer.text
    customer.pay_by_card(GOOD_CARD)
    assert (pages.attempts(intent), pages.charges(intent)) == ([], [])


def test_test_application_is_never_paid_at_a_real_provider(pages: CheckoutWorld) -> None:
    """Its accounts are refused; one that is stored nevertheless is not used."""
    with pages.database.transaction() as connection, pytest.raises(NotLiveError):
        set_provider_account(
            connection,
            pages.box,
            pages.application.id,
            PaymentMethod.CARD,
            provider=ProviderName.PLUTU,
            credentials=CREDENTIALS,
        )
    with pages.database.transaction() as connection:
        connection.execute(
            "insert into provider_accounts (application_id, method, adapter, encrypted_credentials) "
            "values (%s, 'card', 'plutu', 'sealed')",
            (pages.application.id,),
        )
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.pay_by_card(GOOD_CARD)
    assert pages.status(intent) == "succeeded"
    assert pages.rows("select provider, provider_account_id from payment_attempts") == [("sandbox", None)]
