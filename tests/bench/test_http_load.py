"""The load generator bears a service that responds slowly, and reports one that does not respond at all."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

from bench import http_load
from bench.figures import percentile
from bench.http_load import LoadPlan
from bench.merchant import LoadError, run_plan

RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@contextmanager
def server(response: bytes) -> Iterator[int]:
    """Respond to each request on one connection; with an empty response, never. Yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            # The load generator leaves without reading the response to its last request.
            with connection, suppress(ConnectionError):
                while connection.recv(65536):
                    connection.sendall(response)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(10)


def plan(port: int, seconds: float) -> LoadPlan:
    return LoadPlan(port, "GET / HTTP/1.1\r\nHost: x", "", [], 1, seconds, 200)


def test_load_waits_for_a_response_that_comes_after_its_time() -> None:
    """Regression: without any response in time there was no percentile, and the whole run ended."""
    with server(RESPONSE) as port:
        result = http_load.run(plan(port, seconds=0))
    assert (result.answers >= 1, result.unwanted) == (True, {})
    assert result.p99_ms >= result.p50_ms > 0
    assert result.per_second > 0


def test_load_without_any_response_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_load, "STALLED_S", 0.01)
    with server(b"") as port, pytest.raises(TimeoutError, match="no response came"):
        http_load.run(plan(port, seconds=0))


def test_failed_load_generator_says_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(LoadError, match="Connection refused"):
        run_plan(plan(port, seconds=0))


def test_unexpected_responses_are_counted_by_their_status() -> None:
    with (
        server(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n") as port,
        pytest.raises(LoadError, match=r"^of (\d+) responses, \1 were 503; expected 200$"),
    ):
        run_plan(plan(port, seconds=0))


def test_percentile_of_nothing_is_a_clear_error() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    with pytest.raises(ValueError, match="nothing was measured"):
        percentile([], 0.5)
