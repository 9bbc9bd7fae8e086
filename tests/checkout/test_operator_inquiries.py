"""The verifier records the provider's answer for the operators who asked."""

from uuid import UUID

import pytest

from services.checkout.payments.settlement import AttemptContext
from services.checkout.providers.interface import Card, PaymentRequest, ProviderResponse
from services.checkout.verification.verifier import Verifier
from shared.domain.attempts.states import IN_FLIGHT_WINDOW, ProviderAnswer
from shared.domain.attempts.status_inquiries import ask_provider
from shared.domain.audit_log import Actor
from shared.domain.intents.intent import Intent
from shared.domain.payment_methods import PaymentMethod
from tests.checkout.test_verifier import make_sent_attempt, with_bank_away
from tests.checkout.world import CheckoutWorld
from tests.clock import Clock
from tests.waiting import eventually


@pytest.fixture
def verifier(world: CheckoutWorld) -> Verifier:
    return Verifier(world.service_database, world.dependencies.providers, world.dependencies.side_effects)


def _ask(world: CheckoutWorld, attempt: UUID) -> None:
    """Ask for the status as an operator does."""
    with world.database.transaction() as connection:
        ask_provider(connection, attempt, Actor("operator mona@example.ly"))


def _answers(world: CheckoutWorld) -> list[tuple[str | None, str | None, int | None]]:
    """Return the recorded answers, and the state of the attempt that each is about."""
    return world.rows("select answer, state, provider_requests from operator_inquiries order by id")


def _charge(world: CheckoutWorld, intent: Intent, attempt: UUID) -> None:
    """Have the bank charge the attempt, without telling us."""
    provider = world.dependencies.providers._sandbox(None)
    assert provider is not None
    payment = PaymentRequest(
        attempt, intent.uuid, PaymentMethod.CARD, intent.amount, intent.currency, "ar", lambda: False
    )
    response = provider.provider.start(payment, Card("4242424242424242", 12, 2099, "123"))
    assert response.outcome.answer is ProviderAnswer.PAID


def test_answer_is_recorded_for_the_operators_who_asked(world: CheckoutWorld, verifier: Verifier) -> None:
    """Also about a declined attempt, which no planned inquiry looks at."""
    intent = world.make_intent()
    attempt = make_sent_attempt(world, intent)
    world.rows("update payment_attempts set state = 'declined' where id = %s returning 1", attempt)
    _ask(world, attempt)
    verifier.verify(attempt)
    assert _answers(world) == [("not_paid", "declined", 1)]
    assert world.attempts(intent) == [("declined", None)]


def test_operator_who_asks_about_a_declined_attempt_finds_the_payment(
    world: CheckoutWorld, verifier: Verifier
) -> None:
    """The bank has charged it. Then the outcome is known, and there is nothing to decide."""
    intent = world.make_intent()
    attempt = make_sent_attempt(world, intent)
    world.rows("update payment_attempts set state = 'declined' where id = %s returning 1", attempt)
    _charge(world, intent, attempt)
    _ask(world, attempt)
    verifier.verify(attempt)
    assert _answers(world) == [("paid", "paid", 1)]
    assert world.rows("select provider_reference is not null from operator_inquiries") == [(True,)]
    assert world.attempts(intent) == [("paid", None)]
    assert world.status(intent) == "succeeded"


def test_answer_that_settles_the_attempt_is_about_its_new_state(
    world: CheckoutWorld, verifier: Verifier
) -> None:
    attempt = make_sent_attempt(world, world.make_intent())
    Clock(world.database).advance(IN_FLIGHT_WINDOW)
    _ask(world, attempt)
    verifier.verify(attempt)
    assert _answers(world) == [("not_paid", "declined", 1)]


def test_unreachable_provider_is_recorded_as_unknown(world: CheckoutWorld) -> None:
    world.settings = with_bank_away(world)
    verifier = Verifier(world.service_database, world.dependencies.providers, world.dependencies.side_effects)
    attempt = make_sent_attempt(world, world.make_intent())
    _ask(world, attempt)
    verifier.verify(attempt)
    assert _answers(world) == [("unknown", "unknown", 1)]


def test_record_that_nobody_asked_for_records_no_answer(world: CheckoutWorld, verifier: Verifier) -> None:
    """Somebody who can write to the topic can make us ask the provider, and no more."""
    asked, other = (make_sent_attempt(world, world.make_intent()) for _ in range(2))
    _ask(world, asked)
    verifier.verify(other)
    assert world.rows("select answer from operator_inquiries") == [(None,)]


def test_answer_is_about_the_attempt_that_the_provider_was_asked_about(
    world: CheckoutWorld, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The customer sends another code, and an operator asks again, while the provider is being asked."""
    attempt = make_sent_attempt(world, world.make_intent())
    _ask(world, attempt)
    inquire = verifier._inquire

    def inquire_slowly(context: AttemptContext) -> ProviderResponse:
        response = inquire(context)
        world.rows("update payment_attempts set provider_requests = 2 where id = %s returning 1", attempt)
        world.rows("update operator_inquiries set asked_at = asked_at - interval '1 hour' returning 1")
        _ask(world, attempt)
        return response

    monkeypatch.setattr(verifier, "_inquire", inquire_slowly)
    verifier.verify(attempt)
    assert _answers(world) == [("not_paid", "sent", 1), (None, None, None)]


def test_operators_inquiry_is_answered_through_kafka(world: CheckoutWorld) -> None:
    """Relay, topic and verifier are the real ones. The scheduler plans no inquiry for a declined attempt."""
    attempt = make_sent_attempt(world, world.make_intent())
    world.rows("update payment_attempts set state = 'declined' where id = %s returning 1", attempt)
    with world.verifying():
        _ask(world, attempt)
        eventually(lambda: _answers(world) == [("not_paid", "declined", 1)])
