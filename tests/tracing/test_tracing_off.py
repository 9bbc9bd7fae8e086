"""Without a configured collector nothing is traced: no column is set, no header sent, nothing imported."""

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Message, TopicPartition

from shared.domain.topics import PAYMENT_INTENT_EVENTS, WEBHOOKS_DELAY, WEBHOOKS_DELIVER
from shared.platform.kafka import clients
from shared.platform.settings import KafkaSettings
from tests.logs import capture_logs
from tests.tracing.traced_services import TracedServices
from tests.waiting import eventually
from tests.webhooks.receivers import Reply

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PROCESSES = (
    "services.api.app",
    "services.checkout.app",
    "services.checkout.verification.__main__",
    "services.dashboard.app",
    "services.scheduler.__main__",
    "services.webhooks.__main__",
)
_PRINT_IMPORTS = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
from shared.platform.process import start_tracing
start_tracing("api", None)
print([name for name in sys.modules if "opentelemetry" in name or "protobuf" in name])
"""


def _records(settings: KafkaSettings, topic: str) -> list[Message]:
    """Return all records of a topic."""
    consumer = clients.consumer(settings, f"reader-{uuid4()}")
    name = clients.topic_name(settings, topic)
    partitions = consumer.list_topics(name, timeout=10).topics[name].partitions
    consumer.assign([TopicPartition(name, number, 0) for number in partitions])
    ends = [consumer.get_watermark_offsets(partition, timeout=10)[1] for partition in consumer.assignment()]
    found: list[Message] = []

    def has_all() -> bool:
        found.extend(consumer.consume(100, 0.1))
        return len(found) == sum(ends)

    eventually(has_all)
    consumer.close()
    return found


def test_opentelemetry_is_not_imported_without_a_collector(repository_root: Path) -> None:
    """No service imports it: that would cost start-up time and memory."""
    completed = subprocess.run(
        [sys.executable, "-c", _PRINT_IMPORTS, *PROCESSES],
        cwd=repository_root,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert completed.stdout.strip() == "[]"


@pytest.mark.usefixtures("all_topics")
def test_without_tracing_no_trace_is_stored_logged_or_sent(shop: TracedServices) -> None:
    """Also if the merchant sends a traceparent."""
    kafka = shop.checkout.settings.kafka
    with capture_logs() as log, shop.checkout.serve():
        intent = shop.create({"traceparent": CALLER})
        shop.checkout.customer(intent).pay_by_card("4242424242424242")
        lines = log.getvalue()
    assert "web.access" in lines
    assert "trace" not in lines
    assert shop.traces_of(intent) == (None, [None] * 3)
    shop.receiver.answer = lambda _: Reply(503 if len(shop.receiver.requests) == 1 else 200)
    with shop.webhooks():
        eventually(lambda: len(shop.receiver.requests) == 2)
    assert all("traceparent" not in request.headers for request in shop.receiver.requests)
    records = [
        *_records(kafka, PAYMENT_INTENT_EVENTS.name),
        *_records(kafka, WEBHOOKS_DELAY[0].name),
        *_records(kafka, WEBHOOKS_DELIVER.name),
    ]
    assert [record.headers() for record in records] == [None] * 5


@pytest.mark.usefixtures("all_topics")
def test_a_process_without_tracing_passes_a_trace_on(shop: TracedServices) -> None:
    """So services can be upgraded one after another."""
    intent = shop.create()
    with shop.database.transaction() as connection:
        connection.execute("update payment_intents set trace = %s", (CALLER,))
    with shop.checkout.serve(), shop.webhooks():
        shop.checkout.customer(intent).pay_by_card("4242424242424242")
        eventually(lambda: shop.receiver.requests)
    assert shop.receiver.requests[0].headers["traceparent"] == CALLER
