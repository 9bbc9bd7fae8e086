"""People find a trace from a log line, and the log lines from a trace."""

import json
import logging
from typing import Any

import pytest
from psycopg import Cursor

from shared.domain.intents.intent import Intent, NewIntent
from shared.domain.intents.store import create_or_find
from shared.platform.tracing.spans import current_trace
from tests.logs import capture_logs
from tests.tracing.recorded import Recorded, trace_id_of
from tests.tracing.world import TracedWorld


def test_all_lines_of_a_traced_request_have_its_trace_id(
    shop: TracedWorld, spans: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that a library writes in the middle of it; and the next request of this thread has its own."""

    def also_say_hello(cursor: Cursor[Any], new: NewIntent) -> tuple[Intent, bool]:
        logging.getLogger("library").warning("hello")
        return create_or_find(cursor, new)

    monkeypatch.setattr("services.api.payment_intents.store.create_or_find", also_say_hello)
    with capture_logs() as log:
        shop.create()
        shop.create()
        lines = [json.loads(line) for line in log.getvalue().splitlines()]
    first, second = [trace_id_of(span) for span in spans.all()]
    assert [line["trace_id"] for line in lines if line["logger"] == "library"] == [first, second]
    assert [line["trace_id"] for line in lines if line["logger"] == "web.access"] == [first, second]


def test_a_page_of_the_checkout_has_the_trace_id_of_its_intent(shop: TracedWorld, spans: Recorded) -> None:
    intent = shop.create()
    with capture_logs() as log, shop.checkout.serve():
        shop.customer(intent)
        (line,) = [json.loads(line) for line in log.getvalue().splitlines() if "web.access" in line]
    assert line["trace_id"] == trace_id_of(spans.all()[0])
    assert len(spans.trace_ids()) == 1


def test_nothing_is_left_for_the_next_request(shop: TracedWorld, spans: Recorded) -> None:
    """A request that is not traced, in a thread that has just answered one that was."""
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
