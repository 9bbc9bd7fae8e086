"""Metrics of payments count each outcome once, however often it is reported."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from prometheus_client import REGISTRY

from services.checkout.payments.settlement import find_attempt_context
from services.checkout.providers.notification_routes import NotificationHandler
from services.scheduler.jobs.verification_requests import VerificationRequests
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.settlement import settle_response
from shared.domain.attempts.start import start_attempt
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.intents.intent import Intent
from shared.domain.payment_methods import PaymentMethod
from stack.ports import find_free_ports
from tests.checkout.world import CheckoutWorld
from tests.clock import Clock
from tests.waiting import eventually

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
CARD = {"method": "card", "provider": "sandbox"}
ADFALI = {"method": "adfali", "provider": "sandbox"}


class Counted:
    """Return how much a metric increased since this object was created."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in REGISTRY.collect()
            for sample in family.samples
        }

    def __call__(self, sample: str, **labels: str) -> float:
        now = REGISTRY.get_sample_value(sample, labels) or 0.0
        return now - self._before.get((sample, tuple(sorted(labels.items()))), 0.0)

    def settled(self, outcome: str, **labels: str) -> float:
        return self("mizan_attempts_settled_total", outcome=outcome, **labels)

    def timed(self, **labels: str) -> float:
        return self("mizan_attempt_sent_to_settled_seconds_count", **labels)


def calls(counted: Counted, operation: str, outcome: str) -> float:
    return counted(
        "mizan_provider_request_duration_seconds_count",
        provider="sandbox",
        operation=operation,
        outcome=outcome,
    )


def test_card_payment_is_counted_once(world: CheckoutWorld) -> None:
    counted = Counted()
    with world.serve():
        customer = world.customer(world.make_intent())
        customer.pay_by_card("4242424242424242")
        customer.close()
    assert counted("mizan_attempts_started_total", **CARD) == 1
    assert counted.settled("paid", **CARD) == counted.timed(**CARD) == calls(counted, "start", "paid") == 1


def test_wallet_payment_with_a_wrong_code_is_counted_once(world: CheckoutWorld) -> None:
    """Waiting for a code is not an outcome."""
    counted = Counted()
    with world.serve():
        customer = world.customer(world.make_intent())
        customer.pay_by_wallet("adfali", "0921234567")
        customer.enter_code("2222")
        assert counted.settled("paid", **ADFALI) == counted.settled("declined", **ADFALI) == 0
        customer.enter_code("1111")
        customer.close()
    assert counted("mizan_attempts_started_total", **ADFALI) == 1
    assert counted.settled("paid", **ADFALI) == counted.timed(**ADFALI) == 1
    assert calls(counted, "start", "needs_code") == calls(counted, "confirm", "needs_code") == 1
    assert calls(counted, "confirm", "paid") == 1


def test_lost_response_counts_as_unknown_and_then_as_its_outcome(world: CheckoutWorld) -> None:
    counted = Counted()
    world.wait_briefly_for_providers()
    with world.serve(), world.verifying():
        intent = world.make_intent()
        customer = world.customer(intent)
        customer.pay_by_card("4000000000000077")
        customer.close()
        assert calls(counted, "start", "unknown") == 1
        eventually(lambda: counted.settled("paid", **CARD) == 1)
    assert counted.settled("unknown", **CARD) == counted.timed(**CARD) == 1


def test_unreachable_provider_is_counted(world: CheckoutWorld) -> None:
    assert world.settings.sandbox is not None
    nobody = replace(world.settings.sandbox, url=f"http://127.0.0.1:{find_free_ports(1)[0]}")
    world.settings = replace(world.settings, sandbox=nobody)
    counted = Counted()
    with world.serve():
        customer = world.customer(world.make_intent())
        customer.pay_by_card("4242424242424242")
        customer.close()
    assert calls(counted, "start", "unreachable") == 1
    assert calls(counted, "start", "declined") == 0


def test_repeated_notification_is_counted_once(world: CheckoutWorld) -> None:
    attempt = _sent(world, world.make_intent())
    notifications = NotificationHandler(world.service_database, world.dependencies.side_effects)
    with world.database.cursor() as cursor:
        context = find_attempt_context(cursor, attempt)
    assert context is not None
    counted = Counted()
    for _ in range(3):
        notifications.settle(context, AttemptOutcome(ProviderAnswer.PAID))
    notifications.settle(context, AttemptOutcome(ProviderAnswer.DECLINED))
    assert counted.settled("paid", **CARD) == counted.timed(**CARD) == 1
    assert counted.settled("declined", **CARD) == 0


def test_the_time_to_the_outcome_uses_the_databases_clock(world: CheckoutWorld) -> None:
    """Not the clocks of the processes."""
    clock = Clock(world.database)
    clock.stop_at(NOW)
    with world.database.transaction() as connection:
        request = start_attempt(connection, world.make_intent().uuid, "card", "sandbox", AttemptState.SENT)
    clock.stop_at(NOW + timedelta(seconds=90))
    with world.database.transaction() as connection:
        unknown = settle_response(connection, request, AttemptOutcome(ProviderAnswer.UNKNOWN))
        again = settle_response(connection, request, AttemptOutcome(ProviderAnswer.UNKNOWN))
        paid = settle_response(connection, request, AttemptOutcome(ProviderAnswer.PAID))
        repeat = settle_response(connection, request, AttemptOutcome(ProviderAnswer.PAID))
    assert [settled.is_new for settled in (unknown, again, paid, repeat)] == [True, False, True, False]
    assert paid.since_sent_s == pytest.approx(90)


def test_attempts_for_an_operator_are_not_reported_as_stuck(world: CheckoutWorld) -> None:
    """Regression: a payment through a provider without status inquiries fired an alert until it was decided."""
    clock = Clock(world.database)
    clock.stop_at(NOW)
    intent = world.make_intent(expires_at=NOW + timedelta(days=2))
    with world.database.transaction() as connection:
        request = start_attempt(connection, intent.uuid, "card", "plutu", AttemptState.SENT)
    clock.stop_at(NOW + timedelta(seconds=20))
    VerificationRequests(world.scheduler_database).run_once()
    assert REGISTRY.get_sample_value("mizan_attempts_in_progress_oldest_age_seconds") == 20
    with world.database.transaction() as connection:
        settle_response(connection, request, AttemptOutcome(ProviderAnswer.UNKNOWN, can_inquire=False))
    VerificationRequests(world.scheduler_database).run_once()
    assert REGISTRY.get_sample_value("mizan_attempts_in_progress_oldest_age_seconds") == 0


def test_every_outcome_has_a_series_at_zero_from_the_start(world: CheckoutWorld) -> None:
    """Otherwise Prometheus would not see the first one as an increase."""
    assert world.dependencies is not None
    for outcome in ("paid", "declined", "duplicate", "unknown", "abandoned"):
        for provider in ("plutu", "sandbox"):
            labels = {"method": "sadad", "provider": provider, "outcome": outcome}
            assert REGISTRY.get_sample_value("mizan_attempts_settled_total", labels) is not None
    refused = {"provider": "plutu", "result": "refused"}
    assert REGISTRY.get_sample_value("mizan_provider_notifications_total", refused) is not None


def _sent(world: CheckoutWorld, intent: Intent) -> UUID:
    with world.database.transaction() as connection:
        return start_attempt(
            connection, intent.uuid, PaymentMethod.CARD, "sandbox", AttemptState.SENT
        ).attempt
