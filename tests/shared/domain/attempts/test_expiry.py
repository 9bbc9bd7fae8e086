"""From its expiry on, an intent refuses new attempts and is canceled by the scheduler (§3, DESIGN §3)."""

from datetime import timedelta
from threading import Thread

import pytest

from shared.domain.attempts.provider_exchange import SettlementResult
from shared.domain.attempts.start import AttemptRefusedError, IntentExpiredError
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.intents import store as intents
from shared.domain.intents.states import IntentStatus
from shared.platform.database.pool import Database
from tests.clock import Clock
from tests.postgres_statistics import count_lock_waits
from tests.shared.domain.attempts.conftest import Checkout
from tests.waiting import eventually

INSTANT = timedelta(microseconds=1)


def test_attempt_can_start_until_just_before_the_expiry(checkout: Checkout) -> None:
    """And the intent is not canceled."""
    checkout.at(checkout.expires_at - INSTANT)
    checkout.expire()
    code = checkout.begin(AttemptState.AWAITING_CODE)
    checkout.send(code.attempt)
    assert checkout.events() == ["processing"]


def test_no_attempt_starts_after_the_expiry_even_before_the_scheduler_runs(checkout: Checkout) -> None:
    """The scheduler may be down: the checkout refuses attempts, and the scheduler cancels the intent later."""
    code = checkout.begin(AttemptState.AWAITING_CODE)
    checkout.at(checkout.expires_at)
    for state in (AttemptState.SENT, AttemptState.AWAITING_CODE, AttemptState.AWAITING_REDIRECT):
        with pytest.raises(IntentExpiredError):
            checkout.begin(state)
    with pytest.raises(IntentExpiredError):
        checkout.send(code.attempt)
    assert checkout.events() == []
    checkout.expire()
    assert checkout.events() == ["canceled"]
    with pytest.raises(IntentExpiredError):
        checkout.begin()


def test_expired_intent_in_processing_is_canceled_when_its_attempt_fails(checkout: Checkout) -> None:
    """At once, in the same transaction, without the scheduler."""
    request = checkout.begin()
    checkout.at(checkout.expires_at + timedelta(hours=1))
    checkout.expire()
    assert checkout.status() is IntentStatus.PROCESSING
    assert checkout.answer(request, ProviderAnswer.DECLINED) == SettlementResult(
        AttemptState.DECLINED, IntentStatus.CANCELED
    )
    assert checkout.events() == ["processing", "requires_payment_method", "canceled"]


def test_expired_intent_in_processing_succeeds_when_its_attempt_is_paid(checkout: Checkout) -> None:
    """The customer had paid before the expiry."""
    request = checkout.begin()
    checkout.at(checkout.expires_at + timedelta(hours=1))
    checkout.expire()
    assert checkout.answer(request, ProviderAnswer.PAID) == SettlementResult(
        AttemptState.PAID, IntentStatus.SUCCEEDED
    )
    assert checkout.events() == ["processing", "succeeded"]


def test_no_code_is_requested_after_the_expiry(checkout: Checkout) -> None:
    """The customer could not confirm it any more."""
    request = checkout.begin()
    checkout.at(checkout.expires_at)
    assert checkout.answer(request, ProviderAnswer.NEEDS_CODE) == SettlementResult(
        AttemptState.ABANDONED, IntentStatus.CANCELED
    )
    assert checkout.events() == ["processing", "requires_payment_method", "canceled"]


def test_expiry_is_checked_after_the_attempt_gets_the_lock(
    checkout: Checkout, database: Database, clock: Clock
) -> None:
    """The time at which it gets the lock counts, not the time of its request."""
    refused: list[Exception] = []

    def begin() -> None:
        try:
            checkout.begin()
        except AttemptRefusedError as error:
            refused.append(error)

    with database.transaction() as connection:
        intents.lock_intent(connection, checkout.intent)
        customer = Thread(target=begin)
        customer.start()
        eventually(lambda: count_lock_waits(database))
        clock.stop_at(checkout.expires_at)
    customer.join(10)
    assert [type(error) for error in refused] == [IntentExpiredError]
