"""All processes export spans by OTLP if a collector is configured. A failing collector costs only spans."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from shared.domain.intents.intent import Intent
from stack.ports import find_free_ports
from tests.api.conftest import credentials_of
from tests.api.running_api import RunningApi, running_api
from tests.checkout.processes import checkout_processes
from tests.servers import ServiceProcess
from tests.tracing.collector import Collector
from tests.tracing.traced_services import TracedServices
from tests.waiting import eventually

pytestmark = pytest.mark.stack

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = f"00-{TRACE}-b7ad6b7169203331-01"
STOPS_WITHIN_S = 15
"""Supervisors wait half a minute at most for a process to stop."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as made:
        yield made


@contextmanager
def _api(shop: TracedServices, endpoint: str, **environment: str) -> Iterator[RunningApi]:
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, **environment}
    with running_api(shop.checkout.settings.database, **given) as api:
        yield api


def _create(shop: TracedServices, api: RunningApi, reference: str = "order-1") -> UUID:
    credentials = credentials_of(shop.checkout.application)
    answer = api.create({**credentials, "traceparent": CALLER}, merchant_reference=reference)
    assert answer.status_code == 201, answer.text
    return UUID(answer.json()["data"]["uuid"])


def _traced(shop: TracedServices) -> Intent:
    """Create an intent within a trace."""
    intent = shop.create()
    with shop.database.transaction() as connection:
        connection.execute("update payment_intents set trace = %s", (CALLER,))
        connection.execute("update outbox set trace = %s", (CALLER,))
    return intent


def test_api_exports_its_spans_when_it_stops(shop: TracedServices, collector: Collector) -> None:
    """The spans of all workers, although their next scheduled export is far away."""
    references = [f"order-{number}" for number in range(20)]
    with _api(
        shop, collector.url, OTEL_BSP_SCHEDULE_DELAY="600000", OTEL_EXPORTER_OTLP_HEADERS="x-key=hush"
    ) as api:
        for reference in references:
            _create(shop, api, reference)
        assert collector.spans == []
        assert api.stop() == 0
        log = api.log.read_text()
    assert [span.name for span in collector.of("mizan-api")] == ["POST /api/v1/payment-intents"] * 20
    assert {span.trace_id for span in collector.spans} == {TRACE}
    assert {span.path for span in collector.spans} == {"/v1/traces"}
    assert {span.headers["x-key"] for span in collector.spans} == {"hush"}
    assert "hush" not in log
    assert f'"trace_id":"{TRACE}"' in log


def test_spans_are_exported_while_a_process_runs(shop: TracedServices, collector: Collector) -> None:
    with _api(shop, collector.url, OTEL_BSP_SCHEDULE_DELAY="100") as api:
        _create(shop, api)
        eventually(lambda: collector.of("mizan-api"))


def test_the_checkout_exports_its_spans(
    shop: TracedServices, collector: Collector, repository_root: Path, tmp_path: Path
) -> None:
    """Its workers are forked, each with its own exporter, which sends the remaining spans at the end."""
    intent = _traced(shop)
    service = checkout_processes(
        shop.checkout,
        repository_root,
        tmp_path,
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.url}/own/path",
        OTEL_BSP_SCHEDULE_DELAY="600000",
    )
    with service.running() as process:
        eventually(lambda: service.status() == 200)
        for _ in range(10):
            shop.customer(intent).close()
        process.terminate()
        process.wait(STOPS_WITHIN_S)
    assert [span.name for span in collector.of("mizan-checkout")] == ["GET /pay/<intent>"] * 10
    assert {(span.trace_id, span.path) for span in collector.spans} == {(TRACE, "/own/path")}


@pytest.mark.usefixtures("all_topics")
def test_scheduler_and_webhooks_export_their_spans(
    shop: TracedServices, collector: Collector, repository_root: Path
) -> None:
    """From the outbox to the webhook."""
    settings = shop.checkout.settings
    shop.expire(_traced(shop))
    services = [
        ServiceProcess(
            f"services.{name}",
            repository_root,
            settings.database,
            settings.kafka,
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
            MIZAN_SECRET_KEYS=",".join(settings.secret_keys),
            WEBHOOK_ALLOW_PRIVATE="true",
        )
        for name in ("scheduler", "webhooks")
    ]
    with services[0].running(), services[1].running():
        eventually(lambda: shop.receiver.requests)
    prefix = settings.kafka.topic_prefix
    assert {span.name for span in collector.of("mizan-scheduler")} == {f"send {prefix}payment_intents.events"}
    assert {span.name for span in collector.of("mizan-webhooks")} == {
        f"process {prefix}payment_intents.events",
        "POST webhook",
    }
    assert {span.trace_id for span in collector.spans} == {TRACE}


@pytest.mark.parametrize("problem", ["nobody listens", "it hangs", "it refuses", "no such name"])
def test_a_failing_collector_costs_only_spans(
    shop: TracedServices, collector: Collector, problem: str
) -> None:
    """API calls succeed, the process stops in time with exit code 0, and failures are logged at a limited rate."""
    endpoint = {
        "nobody listens": f"http://127.0.0.1:{find_free_ports(1)[0]}",
        "no such name": "http://collector.invalid:4318",
    }.get(problem, collector.url)
    collector.hangs = problem == "it hangs"
    collector.status = 403 if problem == "it refuses" else 200
    with _api(
        shop,
        endpoint,
        OTEL_BSP_SCHEDULE_DELAY="1",
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE="1",
        OTEL_EXPORTER_OTLP_TIMEOUT="600" if problem == "it hangs" else "1",
    ) as api:
        for number in range(50):
            _create(shop, api, f"order-{number}")
        if problem in ("it hangs", "it refuses"):
            eventually(lambda: collector.requests)
        if problem != "it hangs":
            eventually(lambda: _logged_by_exporter(api))
        api.process.terminate()
        assert api.process.wait(STOPS_WITHIN_S) == 0
        logged = _logged_by_exporter(api)
    assert len(logged) <= 2, logged  # one for each worker
    assert collector.spans == []


def _logged_by_exporter(api: RunningApi) -> list[object]:
    return [line for line in api.lines() if str(line.get("logger")).startswith("opentelemetry")]
