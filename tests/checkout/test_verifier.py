"""checkout.verify: status inquiries for overdue attempts until the outcome is known or an operator decides."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event
from uuid import UUID, uuid4

import pytest

from services.checkout.payments.settlement import AttemptContext
from services.checkout.providers.interface import ProviderResponse
from services.checkout.verification.verifier import Verifier
from services.scheduler.jobs.verification_requests import VerificationRequests
from shared.domain.attempts.start import start_attempt
from shared.domain.attempts.states import IN_FLIGHT_WINDOW, AttemptState
from shared.domain.intents.intent import Intent
from shared.domain.messages import DeliveryDue, VerificationDue, decode, encode
from shared.domain.payment_methods import PaymentMethod
from shared.domain.topics import ALL_TOPICS, CHECKOUT_VERIFY, DEAD_LETTERS
from shared.platform.kafka.producer import ConfirmingProducer, OutgoingRecord, raise_after
from shared.platform.kafka.topic_setup import ensure_topics
from shared.platform.settings import SandboxSettings, Settings
from tests.checkout.world import CheckoutWorld
from tests.clock import Clock
from tests.topics import TopicReader
from tests.waiting import eventually

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)


def make_sent_attempt(world: CheckoutWorld, intent: Intent) -> UUID:
    """Start an attempt whose request was lost."""
    with world.database.transaction() as connection:
        request = start_attempt(connection, intent.uuid, PaymentMethod.CARD, "sandbox", AttemptState.SENT)
    return request.attempt


def _queued(world: CheckoutWorld) -> list[VerificationDue]:
    rows = world.rows("select payload from outbox where topic = %s order by id", CHECKOUT_VERIFY.name)
    found = [decode(payload.encode()) for (payload,) in rows]
    assert all(isinstance(message, VerificationDue) for message in found)
    return found  # type: ignore[return-value]


class TestScheduler:
    def test_an_attempt_is_queued_when_its_inquiry_is_due(self, world: CheckoutWorld) -> None:
        clock = Clock(world.database)
        clock.stop_at(NOW)
        attempt = make_sent_attempt(world, world.make_intent())
        job = VerificationRequests(world.scheduler_database)
        assert job.run_once() > 0
        assert _queued(world) == []
        clock.stop_at(NOW + timedelta(seconds=25))
        job.run_once()
        job.run_once()
        assert _queued(world) == [VerificationDue(attempt)]
        clock.stop_at(NOW + timedelta(seconds=45))
        job.run_once()
        assert _queued(world) == [VerificationDue(attempt)] * 2

    def test_pauses_between_inquiries_grow(self, world: CheckoutWorld) -> None:
        clock = Clock(world.database)
        clock.stop_at(NOW)
        make_sent_attempt(world, world.make_intent())
        job, asked_at, second = VerificationRequests(world.scheduler_database), [], 0
        while second < 500:
            clock.stop_at(NOW + timedelta(seconds=second))
            before = len(_queued(world))
            job.run_once()
            asked_at += [second] * (len(_queued(world)) - before)
            second += 5
        assert asked_at == [25, 35, 55, 115, 415]

    def test_inquiries_after_a_decline_end(self, world: CheckoutWorld) -> None:
        clock = Clock(world.database)
        clock.stop_at(NOW)
        make_sent_attempt(world, world.make_intent())
        job, asked_at = VerificationRequests(world.scheduler_database), []
        for second in (25, 45, 65, 125, 425, 1325, 4925, 8525, 12125):
            clock.stop_at(NOW + timedelta(seconds=second))
            before = len(_queued(world))
            job.run_once()
            asked_at += [second] * (len(_queued(world)) - before)
            if second == 45:
                world.rows("update payment_attempts set state = 'declined' returning 1")
        assert asked_at == [25, 45, 65, 125, 425, 1325, 4925]
        assert world.rows("select next_verify_at from payment_attempts") == [(None,)]

    def test_thousands_of_attempts_are_queued_in_batches(self, world: CheckoutWorld) -> None:
        with world.database.transaction() as connection:
            connection.execute(
                """with made as (
                       insert into payment_intents (application_id, merchant_reference, reference, amount,
                                                    currency, status, expires_at)
                       select gen_random_uuid(), n::text, 'r' || n, 1000, 'LYD', 'processing',
                              mizan_now() + interval '1 day'
                       from generate_series(1, 1200) as n returning uuid)
                   insert into payment_attempts (intent_uuid, method, provider, state, provider_requests, sent_at,
                                                 next_verify_at)
                   select uuid, 'card', 'sandbox', 'sent', 1, mizan_now(), mizan_now() from made"""
            )
        job = VerificationRequests(world.scheduler_database)
        assert [job.run_once() == 0, job.run_once() == 0, job.run_once() == 0] == [True, True, False]
        assert len({message.attempt_id for message in _queued(world)}) == 1200


class TestVerifier:
    @pytest.fixture
    def verifier(self, world: CheckoutWorld) -> "Verifier":
        return Verifier(world.service_database, world.dependencies.providers, world.dependencies.side_effects)

    def test_not_found_is_final_only_after_the_in_flight_window(
        self, world: CheckoutWorld, verifier: Verifier
    ) -> None:
        intent = world.make_intent()
        attempt = make_sent_attempt(world, intent)
        verifier.verify(attempt)
        assert world.attempts(intent) == [("unknown", None)]
        assert world.status(intent) == "processing"
        Clock(world.database).advance(IN_FLIGHT_WINDOW)
        verifier.verify(attempt)
        assert world.attempts(intent) == [("declined", None)]
        assert world.status(intent) == "requires_payment_method"

    @pytest.mark.parametrize("is_paid_by_another", [False, True])
    def test_charge_that_comes_after_the_in_flight_window_is_found(
        self, world: CheckoutWorld, verifier: Verifier, *, is_paid_by_another: bool
    ) -> None:
        """The request is on the network while the clock of the database is set forward."""
        intent, clock, job = world.make_intent(), Clock(world.database), VerificationRequests(world.database)
        attempt = make_sent_attempt(world, intent)
        clock.advance(IN_FLIGHT_WINDOW)
        job.run_once()
        verifier.verify(attempt)
        assert world.attempts(intent) == [("declined", None)]
        if is_paid_by_another:
            with world.serve():
                world.customer(intent).pay_by_card("4242424242424242")
        arrived = world.bank.charge(attempt=str(attempt), intent=str(intent.uuid), amount=intent.amount)
        assert arrived.json()["status"] == "paid"
        clock.advance(timedelta(seconds=10))
        job.run_once()
        assert _queued(world) == [VerificationDue(attempt)] * 2
        verifier.verify(attempt)
        assert world.status(intent) == "succeeded"
        assert world.attempts(intent)[0] == ("duplicate" if is_paid_by_another else "paid", None)

    def test_an_unreachable_bank_is_asked_again(self, world: CheckoutWorld) -> None:
        world.settings = with_bank_away(world)
        verifier = Verifier(
            world.service_database, world.dependencies.providers, world.dependencies.side_effects
        )
        intent = world.make_intent()
        attempt = make_sent_attempt(world, intent)
        Clock(world.database).advance(IN_FLIGHT_WINDOW)
        verifier.verify(attempt)
        assert world.attempts(intent) == [("unknown", None)]
        assert world.rows("select next_verify_at is not null from payment_attempts") == [(True,)]

    def test_without_a_sandbox_no_inquiry_is_sent_and_nothing_is_decided(self, world: CheckoutWorld) -> None:
        intent = world.make_intent()
        attempt = make_sent_attempt(world, intent)
        world.settings = replace(world.settings, sandbox=None)
        verifier = Verifier(
            world.service_database, world.dependencies.providers, world.dependencies.side_effects
        )
        Clock(world.database).advance(IN_FLIGHT_WINDOW)
        verifier.verify(attempt)
        assert world.attempts(intent) == [("unknown", None)]

    def test_an_answer_about_an_earlier_code_is_ignored(
        self, world: CheckoutWorld, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The customer sends another code while the provider is being asked."""
        intent = world.make_intent()
        attempt = make_sent_attempt(world, intent)
        Clock(world.database).advance(IN_FLIGHT_WINDOW)
        inquire = verifier._inquire

        def inquire_slowly(context: AttemptContext) -> ProviderResponse:
            response = inquire(context)
            world.rows("update payment_attempts set provider_requests = 2 where id = %s returning 1", attempt)
            return response

        monkeypatch.setattr(verifier, "_inquire", inquire_slowly)
        verifier.verify(attempt)
        assert world.attempts(intent) == [("sent", None)]

    def test_inquiry_about_an_unknown_attempt_is_ignored(
        self, world: CheckoutWorld, verifier: Verifier
    ) -> None:
        intent = world.make_intent()
        verifier.verify(uuid4())
        assert (world.attempts(intent), world.status(intent)) == ([], "requires_payment_method")

    def test_lost_request_for_a_code_is_found_by_an_inquiry(self, pages: CheckoutWorld) -> None:
        """Afterwards the customer sees the code form."""
        intent = pages.make_intent()
        customer = pages.customer(intent)
        customer.pay_by_card("6395043835180860")
        (attempt,) = pages.attempt_ids(intent)
        with pages.database.transaction() as connection:
            connection.execute("delete from code_challenges")
            connection.execute(
                "update payment_attempts set state = 'unknown', next_verify_at = mizan_now() where id = %s",
                (attempt,),
            )
            connection.execute("update payment_intents set status = 'processing'")
        verifier = Verifier(
            pages.service_database, pages.dependencies.providers, pages.dependencies.side_effects
        )
        Clock(pages.database).advance(IN_FLIGHT_WINDOW)
        verifier.verify(attempt)
        customer.open()
        customer.enter_code("111111")
        assert pages.status(intent) == "succeeded"


def with_bank_away(world: CheckoutWorld) -> Settings:
    return replace(world.settings, sandbox=SandboxSettings("http://127.0.0.1:1", "x" * 20, world.bank.ledger))


def test_unreachable_bank_during_a_payment_charges_nothing(world: CheckoutWorld) -> None:
    """Nothing was sent, and the customer is told at once."""
    world.settings = with_bank_away(world)
    intent = world.make_intent()
    with world.serve():
        customer = world.customer(intent)
        customer.pay_by_card("4242424242424242")
        assert "is not responding. Try again in a moment. Nothing was taken." in customer.text
        customer.pay_by_wallet("sadad", "0913632323")
        assert "is not responding. Try again in a moment. Nothing was taken." in customer.text
    assert [reason for _, reason in world.attempts(intent)] == ["provider_away"] * 2


def test_unreadable_messages_become_dead_letters(world: CheckoutWorld) -> None:
    """Records behind them are processed."""
    intent = world.make_intent()
    attempt = make_sent_attempt(world, intent)
    ensure_topics(world.settings.kafka, ALL_TOPICS)
    producer = ConfirmingProducer(world.settings.kafka, "test")
    Clock(world.database).advance(IN_FLIGHT_WINDOW)
    stray, due, key = DeliveryDue(attempt, attempt, 1, NOW), VerificationDue(attempt), str(attempt)
    records = [b"not json", encode(stray), encode(due)]
    producer.send(
        [OutgoingRecord(CHECKOUT_VERIFY.name, key, record.decode()) for record in records],
        on_wait=raise_after(30),
    )
    producer.close()
    with world.verifying():
        eventually(lambda: world.attempts(intent) == [("declined", None)])
        reader = TopicReader(world.settings.kafka, DEAD_LETTERS.name)
        assert len(reader.read(2)) == 2
        reader.close()


def test_a_provider_that_hangs_holds_up_no_other_attempt(
    world: CheckoutWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It responds to one inquiry only when the test ends; all others are settled meanwhile."""
    hanging, *others = [world.make_intent() for _ in range(30)]
    hangs_on = make_sent_attempt(world, hanging)
    for intent in others:
        make_sent_attempt(world, intent)
    Clock(world.database).advance(IN_FLIGHT_WINDOW)
    responds = Event()
    inquire = Verifier._inquire

    def inquire_or_hang(verifier: Verifier, context: AttemptContext) -> ProviderResponse:
        if context.attempt == hangs_on:
            assert responds.wait(60)
        return inquire(verifier, context)

    monkeypatch.setattr(Verifier, "_inquire", inquire_or_hang)
    with world.verifying():
        eventually(lambda: all(world.attempts(intent) == [("declined", None)] for intent in others))
        assert world.attempts(hanging) == [("sent", None)]
        responds.set()
        eventually(lambda: world.attempts(hanging) == [("declined", None)])
