"""Untrusted traceparent headers break nothing and are not stored, and spans contain no secrets."""

import json
import re
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from shared.domain.intents.intent import Intent
from shared.domain.messages import DeliveryDue, encode
from shared.domain.topics import WEBHOOKS_DELIVER
from shared.platform.kafka import clients
from shared.platform.tracing.traceparent import HEADER
from tests.tracing.recorded_spans import RecordedSpans, attributes_of, trace_id_of, traceparent_of
from tests.tracing.test_traceparent import HOSTILE, SANE, TRACE
from tests.tracing.traced_services import TracedServices
from tests.waiting import eventually
from tests.webhooks.receivers import Received, Reply

CREATE = "POST /api/v1/payment-intents"
SENDABLE = [text for text in HOSTILE if text.isascii() and "\n" not in text and "\x00" not in text]


def test_an_invalid_traceparent_starts_a_new_trace(shop: TracedServices, spans: RecordedSpans) -> None:
    """The call succeeds, and our own trace is stored."""
    for text in SENDABLE:
        intent = shop.create({"traceparent": text})
        create = spans.named(CREATE)[-1]
        assert create.parent is None, text
        assert trace_id_of(create) != TRACE
        assert shop.traces_of(intent)[0] == traceparent_of(create)
    assert len(spans.trace_ids()) == len(SENDABLE)


INVALID_HEADERS: dict[str, list[tuple[str, str | bytes | None]]] = {
    "binary": [(HEADER, b"\xff\xfe" * 10_000)],
    "null": [(HEADER, None)],
    "empty": [(HEADER, b"")],
    "several": [(HEADER, b"00-x-y-z"), (HEADER, SANE.encode())],
    "other names": [("Traceparent", SANE.encode()), ("", b"")],
    "many": [(f"h{number}", b"x") for number in range(1000)],
    "a header of HTTP": [(HEADER, f"{SANE}\r\nService-Signature: 0".encode())],
}


@pytest.mark.usefixtures("all_topics")
def test_invalid_headers_of_a_record_are_not_passed_on(shop: TracedServices, spans: RecordedSpans) -> None:
    """The webhook is still sent, once, without a traceparent."""
    with spans.paused():
        for _ in INVALID_HEADERS:
            shop.expire(shop.create())
        due = shop.create_expired_deliveries()
    sent = {str(one.id): what for one, what in zip(due, INVALID_HEADERS, strict=True)}
    for one in due:
        _produce(shop, one, INVALID_HEADERS[sent[str(one.id)]])
    with shop.running("deliver"):
        eventually(lambda: len(shop.receiver.requests) >= len(INVALID_HEADERS))
    received = {sent[json.loads(one.body)["id"]]: one.headers for one in shop.receiver.requests}
    assert sorted(received) == sorted(INVALID_HEADERS)
    assert len(shop.receiver.requests) == len(INVALID_HEADERS)
    assert [what for what, headers in received.items() if HEADER in headers] == []
    assert spans.named("POST webhook") == []


def _produce(shop: TracedServices, due: DeliveryDue, headers: list[tuple[str, str | bytes | None]]) -> None:
    kafka = shop.checkout.settings.kafka
    producer: Producer = clients.producer(kafka, "hostile")
    topic = clients.topic_name(kafka, WEBHOOKS_DELIVER.name)
    producer.produce(topic, encode(due), str(due.application_id), headers=headers)
    assert producer.flush(30) == 0


@pytest.mark.usefixtures("all_topics")
def test_no_secret_is_in_any_span(shop: TracedServices, spans: RecordedSpans) -> None:
    """Of a card payment, a wallet payment, and a webhook whose URL contains secrets."""
    shop.receive_at("/hooks/s3cr3t-path?token=s3cr3t-token")
    shop.receiver.answer = _refuse_once(shop)
    with shop.checkout.serve(), shop.webhooks():
        for pay in (_by_card, _by_wallet):
            intent = shop.create(
                metadata={"color": "m3tadata"},
                description="d3scription",
                customer={"external_id": "cust0mer"},
            )
            pay(shop, intent)
        eventually(lambda: len(shop.receiver.requests) == 3)
        spans.wait_for("POST webhook", 3)
    recorded = repr(
        [(span.name, attributes_of(span), span.events, span.status.description) for span in spans.all()]
    )
    application = shop.checkout.application
    secrets = (
        "s3cr3t",
        "m3tadata",
        "d3scription",
        "cust0mer",
        "4242424242424242",
        "913632323",
        "111111",
    )
    for secret in (*secrets, application.api_key, application.access_token, application.webhook_secret):
        assert secret not in recorded
    assert not re.search(r"\b737\b", recorded)  # as a word: ids often contain these digits
    assert "127.0.0.1" in recorded  # the host of the receiver


def _by_card(shop: TracedServices, intent: Intent) -> None:
    shop.customer(intent).pay_by_card("4242424242424242")


def _by_wallet(shop: TracedServices, intent: Intent) -> None:
    customer = shop.customer(intent)
    customer.pay_by_wallet("sadad", "0913632323")
    customer.enter_code("111111")


def _refuse_once(shop: TracedServices) -> Callable[[Received], Reply]:
    def answer(_: Received) -> Reply:
        return Reply(500 if len(shop.receiver.requests) == 1 else 200)

    return answer
