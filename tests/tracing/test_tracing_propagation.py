"""Everything that happens to an intent belongs to the trace in which it was created."""

from uuid import UUID, uuid4

import pytest
import requests
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from services.scheduler.jobs.expiry import IntentExpiry
from services.scheduler.jobs.verification_requests import VerificationRequests
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.settlement import settle_decision
from shared.domain.attempts.start import start_attempt
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.deliveries.resend import request_resend
from shared.domain.intents.intent import Intent
from shared.domain.payment_methods import PaymentMethod
from shared.platform.tracing.spans import Kind, use_span
from shared.platform.tracing.spans import start_span as begin_span
from tests.tracing.recorded_spans import RecordedSpans, attributes_of, recording, trace_id_of, traceparent_of
from tests.tracing.traced_services import TracedServices
from tests.waiting import eventually
from tests.webhooks.receivers import Received, Reply

CREATE = "POST /api/v1/payment-intents"
NOTIFIED = "POST /providers/sandbox/notifications"
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def _sent(shop: TracedServices, intent: Intent) -> UUID:
    """Start an attempt whose request gets no response."""
    with shop.database.transaction() as connection:
        return start_attempt(
            connection, intent.uuid, PaymentMethod.CARD, "sandbox", AttemptState.SENT
        ).attempt


def test_intent_and_its_outbox_row_have_the_trace_of_the_create(
    shop: TracedServices, spans: RecordedSpans
) -> None:
    intent = shop.create()
    (create,) = spans.named(CREATE)
    assert shop.traces_of(intent) == (traceparent_of(create), [traceparent_of(create)])
    assert attributes_of(create)["mizan.intent"] == str(intent.uuid)


def test_a_repeated_create_does_not_change_the_trace(shop: TracedServices, spans: RecordedSpans) -> None:
    """The second call has its own trace."""
    intent = shop.create(merchant_reference="order-1")
    assert shop.call(merchant_reference="order-1").status_code == 200
    first, second = spans.named(CREATE)
    assert trace_id_of(first) != trace_id_of(second)
    assert shop.traces_of(intent)[0] == traceparent_of(first)


def test_event_of_an_expiry_has_the_trace_of_its_intent(shop: TracedServices, spans: RecordedSpans) -> None:
    intents = [shop.create() for _ in range(3)]
    for intent in intents:
        shop.expire(intent)
    IntentExpiry(shop.database).run_once()
    for intent in intents:
        own, in_outbox = shop.traces_of(intent)
        assert in_outbox == [own, own]
    assert len(spans.trace_ids()) == 3


def test_operator_decision_stays_in_the_trace_of_the_intent(
    shop: TracedServices, spans: RecordedSpans
) -> None:
    """The operator's request has its own trace."""
    intent = shop.create()
    attempt = _sent(shop, intent)
    deciding = begin_span("POST /decisions", Kind.SERVER, None, {})
    with use_span(deciding), shop.database.transaction() as connection:
        settle_decision(connection, attempt, AttemptOutcome(ProviderAnswer.PAID))
    own, in_outbox = shop.traces_of(intent)
    assert in_outbox == [own] * 3
    assert own == traceparent_of(spans.named(CREATE)[0])


@pytest.mark.usefixtures("all_topics")
def test_an_intent_created_without_a_trace_stays_untraced(shop: TracedServices, spans: RecordedSpans) -> None:
    """Also if its payment and webhook are handled while tracing is on."""
    with spans.paused():
        intent = shop.create()
    with shop.checkout.serve():
        shop.checkout.customer(intent).pay_by_card("4242424242424242")
    assert shop.traces_of(intent) == (None, [None, None, None])
    with shop.webhooks():
        eventually(lambda: shop.receiver.requests)
    assert "traceparent" not in shop.receiver.requests[0].headers
    assert spans.all() == []


@pytest.mark.usefixtures("all_topics")
def test_unsampled_trace_is_recorded_nowhere(shop: TracedServices) -> None:
    """The sampling decision is part of the traceparent, so no trace is recorded in part."""
    with recording(ALWAYS_OFF) as spans:
        intent = shop.create({"traceparent": CALLER})
        own, _ = shop.traces_of(intent)
        with shop.checkout.serve(), shop.webhooks():
            shop.checkout.customer(intent).pay_by_card("4242424242424242")
            eventually(lambda: shop.receiver.requests)
        assert spans.all() == []
    assert own is not None
    assert (own[:36], own[-2:]) == (CALLER[:36], "00")
    received = shop.receiver.requests[0].headers["traceparent"]
    assert (received[:36], received[-2:]) == (CALLER[:36], "00")


def test_status_inquiries_are_part_of_the_trace(shop: TracedServices, spans: RecordedSpans) -> None:
    """The status inquiry runs in the span of its record's processing."""
    prefix = shop.checkout.settings.kafka.topic_prefix
    intent = shop.create()
    _sent(shop, intent)
    with shop.database.transaction() as connection:
        connection.execute("update payment_attempts set next_verify_at = mizan_now()")
    with shop.checkout.verifying():
        (asked,) = spans.wait_for("GET provider")
        spans.wait_for(f"process {prefix}checkout.verify")
    assert spans.chain(asked) == [
        CREATE,
        f"send {prefix}checkout.verify",
        f"process {prefix}checkout.verify",
        "GET provider",
    ]


def test_verification_request_without_a_trace_has_null(shop: TracedServices) -> None:
    attempt = _sent(shop, shop.create())
    with shop.database.transaction() as connection:
        connection.execute("update payment_attempts set next_verify_at = mizan_now()")
    VerificationRequests(shop.database).run_once()
    rows = shop.checkout.rows("select key, trace from outbox where topic = 'checkout.verify'")
    assert rows == [(str(attempt), None)]


def test_a_late_notification_is_part_of_the_trace(shop: TracedServices, spans: RecordedSpans) -> None:
    """The provider sends no trace. It is found through the attempt in the notification."""
    intent = shop.create()
    with shop.checkout.serve():
        shop.checkout.customer(intent).pay_by_card("4000000000000259")
        (charge,) = shop.checkout.charges(intent)
        shop.checkout.bank.settle(charge, "paid")
        (notified,) = spans.wait_for(NOTIFIED)
    assert spans.chain(notified) == [CREATE, NOTIFIED]
    assert shop.traces_of(intent)[1][-1] == traceparent_of(notified)


def test_health_checks_metrics_and_static_files_have_no_spans(
    shop: TracedServices, spans: RecordedSpans
) -> None:
    for path in ("/healthz", "/readyz", "/metrics", "/static/mark.svg"):
        shop.client.get(path)
    with shop.checkout.serve():
        assert requests.get(f"{shop.checkout.url}/pay/{uuid4()}", timeout=10).status_code == 404
        assert requests.get(f"{shop.checkout.url}/static/mark.svg", timeout=10).status_code == 200
    assert spans.all() == []


@pytest.mark.usefixtures("all_topics")
def test_a_resend_has_the_trace_of_its_request(shop: TracedServices, spans: RecordedSpans) -> None:
    """Not the trace of the payment."""

    def only_resends_work(_: Received) -> Reply:
        return Reply(200 if len(shop.receiver.requests) > 1 else 500)

    shop.receiver.answer = only_resends_work
    shop.expire(shop.create())
    IntentExpiry(shop.database).run_once()
    with shop.webhooks():
        (first,) = spans.wait_for("POST webhook")
        delivery = UUID(str(attributes_of(first)["mizan.delivery"]))
        requesting = begin_span("POST /resend", Kind.SERVER, None, {})
        assert requesting is not None
        with use_span(requesting), shop.database.transaction() as connection:
            request_resend(connection, delivery, uuid4())
        requesting.end()
        eventually(
            lambda: [s for s in spans.named("POST webhook") if attributes_of(s)["mizan.step"] == "resend"]
        )
    (resent,) = [s for s in spans.named("POST webhook") if attributes_of(s)["mizan.step"] == "resend"]
    assert spans.chain(resent)[0] == "POST /resend"
    assert trace_id_of(resent) != trace_id_of(first)


@pytest.mark.parametrize("status", [200, 500])
def test_span_of_an_api_request_has_its_route_and_outcome(
    shop: TracedServices, spans: RecordedSpans, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The route, not the path."""
    intent = shop.create()
    if status == 500:

        def fail(*_: object) -> None:
            raise RuntimeError("no")

        monkeypatch.setattr("services.api.payment_intents.store.find_intent", fail)
    shop.retrieve(intent)
    retrieved = spans.named("GET /api/v1/payment-intents/<payment_intent>")[-1]
    assert attributes_of(retrieved) == {
        "http.request.method": "GET",
        "http.route": "/api/v1/payment-intents/<payment_intent>",
        "http.response.status_code": status,
        **({"error.type": "500"} if status == 500 else {}),
    }
