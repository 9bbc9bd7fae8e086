"""The receivers of the load, over real sockets: each behaviour, and that a request is recorded before its answer."""

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest

from chaos.history import History, WebhookReceived, read_history
from chaos.load import receivers
from chaos.load.http_client import HttpAddress, HttpConnection, HttpResponse, NoResponseError
from chaos.load.receiver_behaviour import Behaviour
from chaos.load.receivers import Receipt, Receiver, Receivers
from chaos.load.recorder import Recorder
from tests.event_loops import run_async

BODY = json.dumps({"id": "d-1", "event": "payment_intent.succeeded", "data": {"uuid": "u-1"}}).encode()
HEADERS = {"Content-Type": "application/json", "Service-Signature": "abc"}


class _Endpoint:
    """Receivers with one living application, whose behaviour the test sets."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.behaviour = Behaviour.OK
        self.receipts: list[Receipt] = []
        self._history = History(path)
        self.receivers = Receivers(
            lambda _number, _elapsed, _lives: self.behaviour,
            Recorder(self._history),
            self.receipts.append,
            Random(1),
        )
        self.receiver: Receiver = self.receivers.add(lives=True)
        self.receiver.application = "app-1"

    async def post(self, path: str = "/0/1", body: bytes = BODY) -> HttpResponse:
        connection = self.connect()
        try:
            return await connection.request("POST", path, HEADERS, body, timeout_s=2)
        finally:
            connection.close()

    def connect(self) -> HttpConnection:
        return HttpConnection(HttpAddress("127.0.0.1", self.receivers.port, ""))

    def received(self) -> list[WebhookReceived]:
        return [record for record in read_history(self.path) if isinstance(record, WebhookReceived)]

    def run(self, test: Coroutine[Any, Any, None]) -> None:
        async def main() -> None:
            await self.receivers.start()
            try:
                await test
            finally:
                self.receivers.close()
                await asyncio.sleep(0)

        try:
            run_async(main())
        finally:
            self._history.close()


@pytest.fixture
def endpoint(tmp_path: Path) -> _Endpoint:
    return _Endpoint(tmp_path / "history")


@pytest.mark.parametrize("behaviour", [Behaviour.OK, Behaviour.ERROR, Behaviour.UNAVAILABLE])
def test_status_is_answered_and_recorded(endpoint: _Endpoint, behaviour: Behaviour) -> None:
    async def test() -> None:
        endpoint.behaviour = behaviour
        response = await endpoint.post()
        assert str(response.status) == behaviour.value

    endpoint.run(test())
    (received,) = endpoint.received()
    assert (received.application, received.answer) == ("app-1", behaviour.value)
    assert (received.signature, received.body.encode("latin-1")) == ("abc", BODY)
    assert received.url.endswith("/0/1")
    assert endpoint.receipts == [Receipt("app-1", "d-1", "payment_intent.succeeded", "u-1")]


def test_redirect_leads_to_a_url_that_belongs_to_nobody(endpoint: _Endpoint) -> None:
    async def test() -> None:
        endpoint.behaviour = Behaviour.REDIRECT
        response = await endpoint.post()
        location = response.header("location") or ""
        assert response.status == 302
        assert (
            await endpoint.post(location.removeprefix(f"http://127.0.0.1:{endpoint.receivers.port}"))
        ).status == 500

    endpoint.run(test())
    assert [(received.application, received.answer) for received in endpoint.received()] == [
        ("app-1", "302"),
        ("", "500"),
    ]


@pytest.mark.parametrize("behaviour", [Behaviour.CLOSE, Behaviour.CLOSE_UNREAD, Behaviour.GARBAGE])
def test_closed_connection_is_recorded_as_close(endpoint: _Endpoint, behaviour: Behaviour) -> None:
    async def test() -> None:
        endpoint.behaviour = behaviour
        with pytest.raises(NoResponseError):
            await endpoint.post()

    endpoint.run(test())
    assert [received.answer for received in endpoint.received()] == ["close"]


def test_close_after_the_headers_does_not_wait_for_the_body(endpoint: _Endpoint) -> None:
    async def test() -> None:
        endpoint.behaviour = Behaviour.CLOSE_UNREAD
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.receivers.port)
        writer.write(b"POST /0/1 HTTP/1.1\r\nContent-Length: 9\r\n\r\n{")
        try:
            async with asyncio.timeout(2):
                with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                    await reader.readexactly(1)
        finally:
            writer.transport.abort()

    endpoint.run(test())
    assert endpoint.received() == []  # no complete request


def test_hanging_receiver_records_at_once_and_closes_later(
    endpoint: _Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receivers, "_HANG_S", 0.3)

    async def test() -> None:
        endpoint.behaviour = Behaviour.HANG
        request = asyncio.create_task(endpoint.post())
        async with asyncio.timeout(2):
            while not endpoint.received():
                await asyncio.sleep(0.01)
        assert not request.done()
        with pytest.raises(NoResponseError, match=r"Reset|Incomplete"):
            await request

    endpoint.run(test())
    assert [received.answer for received in endpoint.received()] == ["hang"]


def test_slow_receiver_answers_200_after_its_record(
    endpoint: _Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receivers, "_SLOW_S", (0.3, 0.3))

    async def test() -> None:
        endpoint.behaviour = Behaviour.SLOW
        request = asyncio.create_task(endpoint.post())
        async with asyncio.timeout(2):
            while not endpoint.received():
                await asyncio.sleep(0.01)
        assert not request.done()
        assert (await request).status == 200

    endpoint.run(test())
    assert [received.answer for received in endpoint.received()] == ["slow"]


def test_recovered_receivers_answer_200_except_the_dead_one(endpoint: _Endpoint) -> None:
    dead = endpoint.receivers.add(lives=False)
    dead.application = "app-2"

    async def test() -> None:
        endpoint.behaviour = Behaviour.ERROR
        assert (await endpoint.post()).status == 500
        endpoint.receivers.recover()
        assert (await endpoint.post()).status == 200
        assert (await endpoint.post("/1/1")).status == 500

    endpoint.run(test())
    assert [received.application for received in endpoint.received()] == ["app-1", "app-1", "app-2"]


def test_requests_of_one_connection_share_its_number(endpoint: _Endpoint) -> None:
    async def test() -> None:
        connection = endpoint.connect()
        for path in ("/0/1", "/0/2"):
            assert (await connection.request("POST", path, HEADERS, BODY)).status == 200
        connection.close()
        await endpoint.post()

    endpoint.run(test())
    first, second, third = endpoint.received()
    assert first.connection == second.connection != third.connection
    assert second.url.endswith("/0/2")


def test_body_that_is_no_event_is_recorded_byte_for_byte(endpoint: _Endpoint) -> None:
    async def test() -> None:
        assert (await endpoint.post(body=b"\xff{")).status == 200

    endpoint.run(test())
    assert endpoint.received()[0].body.encode("latin-1") == b"\xff{"
    assert endpoint.receipts == [Receipt("app-1", None, None, None)]
