"""Requests that have waited too long for a thread are refused, and only those."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from werkzeug.test import Client, TestResponse

from services.api import load_shedding
from services.api.load_shedding import MAX_WAIT_S, OVERLOADED_WAIT_S, LoadShedding, QueueProbe
from tests.waiting import eventually

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

PATH = "/api/v1/payment-intents"


@pytest.fixture
def probe() -> QueueProbe:
    return QueueProbe(("127.0.0.1", 1), "/probe/secret")


@pytest.fixture
def client(probe: QueueProbe) -> Client:
    def answer(environ: "WSGIEnvironment", start_response: "StartResponse") -> list[bytes]:
        start_response("201 CREATED", [("Content-Type", "application/json")])
        return [b"{}"]

    return Client(LoadShedding(answer, probe))


def test_request_is_answered_while_no_probe_waits(client: Client) -> None:
    assert client.post(PATH).status_code == 201


def test_request_is_answered_if_the_probe_behind_it_has_not_waited_long(
    client: Client, probe: QueueProbe
) -> None:
    probe.sent_at = monotonic() - MAX_WAIT_S / 2
    assert client.post(PATH).status_code == 201


def test_request_that_waited_too_long_is_refused(client: Client, probe: QueueProbe) -> None:
    """With the body and the headers of any other 503."""
    probe.sent_at = monotonic() - MAX_WAIT_S - 1
    answer = client.post(PATH, headers={"X-Request-Id": "from-the-caller"})
    assert_is_refusal(answer)
    assert answer.headers["X-Request-Id"] == "from-the-caller"
    assert client.get(f"{PATH}/x").headers["X-Request-Id"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_operations_are_never_refused(client: Client, probe: QueueProbe, path: str) -> None:
    """An orchestrator would otherwise restart a process because it is busy."""
    probe.sent_at = monotonic() - 60
    assert client.get(path).status_code == 201


def test_after_a_refusal_requests_may_wait_less(client: Client, probe: QueueProbe) -> None:
    """CoDel: a queue that did not become short by itself is kept short."""
    between = (OVERLOADED_WAIT_S + MAX_WAIT_S) / 2
    probe.sent_at = monotonic() - between
    assert client.post(PATH).status_code == 201
    probe.sent_at = monotonic() - MAX_WAIT_S - 1
    assert_is_refusal(client.post(PATH))
    probe.sent_at = monotonic() - between
    assert_is_refusal(client.post(PATH))
    probe.sent_at = inf
    assert client.post(PATH).status_code == 201


def test_a_probe_is_answered_with_the_process(client: Client, probe: QueueProbe) -> None:
    """Also while everything else is refused."""
    probe.sent_at = monotonic() - 60
    assert client.get(probe.path).text == str(os.getpid())
    assert_is_refusal(client.get("/probe/guessed"))


def assert_is_refusal(answer: TestResponse) -> None:
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"
    assert answer.content_type == "application/json"
    assert answer.get_json() == {"message": "The service is temporarily unavailable. Please try again."}


class Workers:
    """Stands in for granian: answers probes, the first few connections by another worker."""

    def __init__(self, foreign: int = 0) -> None:
        self.answering = Event()
        self.answering.set()
        self.foreign = foreign
        self.connections = 0
        self.answers = 0
        self._listener = socket.create_server(("127.0.0.1", 0))

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", int(self._listener.getsockname()[1])

    @contextmanager
    def running(self) -> Iterator[None]:
        Thread(target=self._accept, daemon=True).start()
        try:
            yield
        finally:
            self.answering.set()
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                accepted, _ = self._listener.accept()
                self.connections += 1
                pid = os.getpid() + (self.connections <= self.foreign)
                Thread(target=self._answer, args=(accepted, pid), daemon=True).start()

    def _answer(self, accepted: socket.socket, pid: int) -> None:
        with accepted, suppress(OSError):
            while accepted.recv(4096):
                self.answering.wait()
                accepted.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(str(pid))}\r\n\r\n{pid}".encode())
                self.answers += 1


@contextmanager
def probing(workers: Workers) -> Iterator[QueueProbe]:
    probe = QueueProbe(workers.address, "/probe/secret")
    with workers.running():
        thread = Thread(target=probe.run, daemon=True)
        thread.start()
        eventually(lambda: workers.answers > workers.foreign + 1)
        yield probe
        probe.stop()
    thread.join(10)
    assert not thread.is_alive()


def test_probe_says_how_long_it_waits() -> None:
    """Nothing is refused before and after; an overload ends with a probe that did not wait."""
    workers = Workers()
    with probing(workers) as probe:
        workers.answering.clear()
        eventually(lambda: monotonic() - probe.sent_at > MAX_WAIT_S)
        probe.begin_overload()
        assert probe.limit_s == OVERLOADED_WAIT_S
        workers.answering.set()
        eventually(lambda: probe.limit_s == MAX_WAIT_S)
    assert workers.connections == 1


def test_probe_looks_for_a_connection_to_its_own_worker() -> None:
    workers = Workers(foreign=3)
    with probing(workers):
        assert workers.connections == 4


def test_nothing_is_refused_if_probes_get_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of the probe must not stop the API. It connects again."""
    monkeypatch.setattr(load_shedding, "_PROBE_LIMIT_S", 0.2)
    monkeypatch.setattr(load_shedding, "_RECONNECT_AFTER_S", 0.01)
    workers = Workers()
    with probing(workers) as probe:
        workers.answering.clear()
        eventually(lambda: workers.connections > 1)
        assert monotonic() - probe.sent_at < MAX_WAIT_S
        workers.answering.set()
        answers = workers.answers
        eventually(lambda: workers.answers > answers + 3)
