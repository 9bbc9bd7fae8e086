"""One trace from a merchant's call to its webhook, over PostgreSQL, Kafka and a delay topic."""

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from services.scheduler.jobs.expiry import IntentExpiry
from shared.domain.topics import PAYMENT_INTENT_EVENTS, WEBHOOKS_DELAY
from tests.scheduler.running_jobs import running_jobs
from tests.tracing.recorded_spans import RecordedSpans, attributes_of, trace_id_of, traceparent_of
from tests.tracing.traced_services import TracedServices
from tests.waiting import eventually
from tests.webhooks.receivers import Received, Reply

pytestmark = pytest.mark.usefixtures("all_topics")

CREATE = "POST /api/v1/payment-intents"
PAY = "POST /pay/<intent>"
TRY = "POST webhook"
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_one_trace_covers_everything_from_create_to_webhook(
    shop: TracedServices, spans: RecordedSpans
) -> None:
    """The chain of parents: webhook, intake, event record, payment, create, and the caller's span."""
    prefix = shop.checkout.settings.kafka.topic_prefix
    with shop.webhooks(), shop.checkout.serve():
        intent = shop.create({"traceparent": CALLER})
        shop.checkout.customer(intent).pay_by_card("4242424242424242")
        eventually(lambda: shop.receiver.requests)
        (sent,) = spans.wait_for(TRY)
    (create,) = spans.named(CREATE)
    assert trace_id_of(create) == CALLER[3:35]
    assert create.parent is not None
    assert f"{create.parent.span_id:016x}" == CALLER[36:52]
    assert spans.trace_ids() == {CALLER[3:35]}
    assert spans.chain(sent, since=create) == [
        CREATE,
        PAY,
        f"send {prefix}{PAYMENT_INTENT_EVENTS.name}",
        f"process {prefix}{PAYMENT_INTENT_EVENTS.name}",
        TRY,
    ]
    assert shop.receiver.requests[0].headers["traceparent"] == traceparent_of(sent)
    (charge,) = spans.named("POST provider")
    assert spans.chain(charge, since=create) == [CREATE, PAY, "POST provider"]
    kinds = [span.kind for span in (create, *spans.named(PAY), charge, sent)]
    assert kinds == [SpanKind.SERVER, SpanKind.SERVER, SpanKind.CLIENT, SpanKind.CLIENT]


def test_a_retry_through_a_delay_topic_stays_in_the_trace(shop: TracedServices, spans: RecordedSpans) -> None:
    """Each try has its own span. The second one descends from the record of the delay topic."""
    prefix = shop.checkout.settings.kafka.topic_prefix

    def refuse_the_first(_: Received) -> Reply:
        return Reply(503 if len(shop.receiver.requests) == 1 else 200)

    shop.receiver.answer = refuse_the_first
    intent = shop.create()
    shop.expire(intent)
    with shop.webhooks(), running_jobs(IntentExpiry(shop.database)):
        eventually(lambda: len(shop.receiver.requests) == 2)
        first, second = spans.wait_for(TRY, 2)
    assert len(spans.trace_ids()) == 1
    taken_in = [
        CREATE,
        f"send {prefix}{PAYMENT_INTENT_EVENTS.name}",
        f"process {prefix}{PAYMENT_INTENT_EVENTS.name}",
    ]
    assert spans.chain(first) == [*taken_in, TRY]
    assert spans.chain(second) == [*taken_in, f"process {prefix}{WEBHOOKS_DELAY[0].name}", TRY]
    assert [request.headers["traceparent"] for request in shop.receiver.requests] == [
        traceparent_of(first),
        traceparent_of(second),
    ]
    assert [attributes_of(one)["mizan.step"] for one in (first, second)] == [1, 2]
    assert [attributes_of(one)["http.response.status_code"] for one in (first, second)] == [503, 200]
    assert [one.status.status_code for one in (first, second)] == [StatusCode.ERROR, StatusCode.UNSET]
