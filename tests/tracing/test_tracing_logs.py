"""Log lines of a traced request carry its trace id."""

import json
import logging
from typing import Any

import pytest
from psycopg import Cursor

from shared.domain.intents.intent import Intent, NewIntent
from shared.domain.intents.store import create_or_find
from shared.platform.tracing.spans import current_trace
from tests.logs import capture_logs
from tests.tracing.recorded_spans import RecordedSpans, trace_id_of
from tests.tracing.traced_services import TracedServices


def test_all_log_lines_of_a_traced_request_have_its_trace_id(
    shop: TracedServices, spans: RecordedSpans, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of libraries. The next request in the same thread has its own trace id."""

    def create_and_log(cursor: Cursor[Any], new: NewIntent) -> tuple[Intent, bool]:
        logging.getLogger("library").warning("hello")
        return create_or_find(cursor, new)

    monkeypatch.setattr("services.api.payment_intents.store.create_or_find", create_and_log)
    with capture_logs() as log:
        shop.create()
        shop.create()
        lines = [json.loads(line) for line in log.getvalue().splitlines()]
    first, second = [trace_id_of(span) for span in spans.all()]
    assert [line["trace_id"] for line in lines if line["logger"] == "library"] == [first, second]
    assert [line["trace_id"] for line in lines if line["logger"] == "web.access"] == [first, second]


def test_log_line_of_a_checkout_page_has_the_trace_id_of_its_intent(
    shop: TracedServices, spans: RecordedSpans
) -> None:
    intent = shop.create()
    with capture_logs() as log, shop.checkout.serve():
        shop.customer(intent)
        (line,) = [json.loads(line) for line in log.getvalue().splitlines() if "web.access" in line]
    assert line["trace_id"] == trace_id_of(spans.all()[0])
    assert len(spans.trace_ids()) == 1


def test_trace_id_does_not_leak_into_the_next_request(shop: TracedServices, spans: RecordedSpans) -> None:
    """An untraced request follows a traced one in the same thread."""
    shop.create()
    with capture_logs() as log:
        shop.client.get("/readyz")
        shop.client.get("/healthz")
        logging.getLogger("library").warning("later")
        lines = log.getvalue()
    assert "later" in lines
    assert "trace_id" not in lines
    assert current_trace() is None
    assert len(spans.all()) == 1
