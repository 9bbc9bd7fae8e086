"""Test applications pay at the sandbox only, live ones at their own accounts only, and every page says which it is."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from psycopg.errors import CheckViolation

from services.checkout.providers.http_client import ProviderClient
from services.checkout.providers.interface import Card, FailureReason, PaymentRequest
from services.checkout.providers.registry import ProviderRegistry
from shared.domain.applications.provider_accounts import (
    NotLiveError,
    ProviderName,
    set_provider_account,
)
from shared.domain.attempts.states import ProviderAnswer
from shared.domain.payment_methods import PaymentMethod
from shared.platform.settings import Environment
from tests.checkout.browser.page_states import SHOWN
from tests.checkout.browser.page_texts import LANGUAGES
from tests.checkout.world import CheckoutWorld
from tests.logs import capture_logs
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
    """Its accounts are refused, also by the database, which earlier versions share during an upgrade."""
    with pages.database.transaction() as connection, pytest.raises(NotLiveError):
        set_provider_account(
            connection,
            pages.box,
            pages.application.id,
            PaymentMethod.CARD,
            provider=ProviderName.PLUTU,
            credentials=CREDENTIALS,
        )
    with pages.database.transaction() as connection, pytest.raises(CheckViolation):
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


def test_silent_test_cards_leave_threads_to_live_customers(
    world: CheckoutWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In production a limited number of requests to the sandbox run at once; one too many is not sent."""
    monkeypatch.setattr("services.checkout.providers.registry._SANDBOX_REQUESTS", 1)
    production = replace(world.settings, environment=Environment.PRODUCTION)
    registry = ProviderRegistry(production, world.box)
    provider = registry._sandbox(None)
    other = registry._sandbox(None)
    assert provider is not None
    assert other is not None
    payments = [
        PaymentRequest(uuid4(), uuid4(), PaymentMethod.CARD, 25_000, "LYD", "en", lambda: False)
        for _ in range(3)
    ]
    card = Card(GOOD_CARD, 12, 2034, "737")
    entered, may_answer = Event(), Event()
    post_json = ProviderClient.post_json

    def answer_late(self: ProviderClient, *arguments: Any) -> Any:
        entered.set()
        may_answer.wait(20)
        return post_json(self, *arguments)

    monkeypatch.setattr(ProviderClient, "post_json", answer_late)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(provider.provider.start, payments[0], card)
        assert entered.wait(20)
        refused = other.provider.start(payments[1], card)
        may_answer.set()
        assert first.result(20).outcome.answer is ProviderAnswer.PAID
    assert refused.outcome.reason is FailureReason.PROVIDER_AWAY
    assert other.provider.start(payments[2], card).outcome.answer is ProviderAnswer.PAID


def test_wrong_token_of_the_sandbox_is_no_decline(world: CheckoutWorld) -> None:
    """The customer is told to try again, and the log says what is wrong."""
    assert world.settings.sandbox is not None
    world.settings = replace(world.settings, sandbox=replace(world.settings.sandbox, secret="another"))
    intent = world.make_intent()
    with world.serve(), capture_logs() as log:
        world.customer(intent).pay_by_card(GOOD_CARD)
    assert world.attempts(intent) == [("declined", "provider_away")]
    assert "SANDBOX_SECRET is another one there" in log.getvalue()
