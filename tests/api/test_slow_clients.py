"""Clients that send slowly: nobody else waits for them, and they are answered with 408 in the end."""

import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from select import select

import pytest
import requests
from werkzeug.test import Client, TestResponse

from services.api import slow_clients
from services.api.app import make_app
from services.api.slow_clients import BodyLimit, end_stalled_connections
from shared.platform.database.pool import Database
from shared.platform.settings import DatabaseSettings, Settings
from tests.api.conftest import PATH, MakeApplication, credentials_of
from tests.api.running_api import running_api
from tests.waiting import eventually


class Body(io.BytesIO):
    """Arrives when `arrived` is set; `waiting` is set when somebody reads it."""

    def __init__(self, text: bytes = b"{}") -> None:
        super().__init__(text)
        self.waiting = threading.Event()
        self.arrived = threading.Event()

    def read(self, size: int | None = -1) -> bytes:
        self.waiting.set()
        assert self.arrived.wait(40)
        return super().read(size)


Post = Callable[..., TestResponse]


@pytest.fixture
def post(settings: Settings, api_database: Database, make_application: MakeApplication) -> Post:
    """Create an intent, at a server with three threads, of which one may wait for a body."""
    client = Client(BodyLimit(make_app(settings, api_database), 3))
    known = credentials_of(make_application("Tripoli Coffee"))

    def call(body: io.BytesIO, **headers: str) -> TestResponse:
        length = {} if "Transfer-Encoding" in headers else {"Content-Length": str(len(body.getvalue()))}
        return client.post(PATH, input_stream=body, headers={**known, **length, **headers})

    return call


def test_creates_are_refused_while_too_many_bodies_are_waited_for(post: Post) -> None:
    """503 with Retry-After, without reading the body. Afterwards the next one is read again."""
    slow, refused = Body(), Body()
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(post, slow)
        try:
            assert slow.waiting.wait(40)
            for _ in range(2):
                answer = post(refused)
                assert answer.status_code == 503
                assert answer.headers["Retry-After"] == "1"
                assert answer.get_json()["message"]
            assert not call.done()
        finally:
            slow.arrived.set()
        assert call.result().status_code == 422  # the body is {}
    assert not refused.waiting.is_set()
    assert post(slow).status_code == 422


@pytest.mark.parametrize("headers", [{}, {"Transfer-Encoding": "chunked"}], ids=["length", "chunked"])
def test_a_body_that_took_too_long_is_refused_with_408(
    post: Post, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if it is complete then: the deadline does not depend on luck. The permit is given back."""
    monkeypatch.setattr(slow_clients, "REQUEST_LIMIT_S", -1)
    for _ in range(2):
        answer = post(io.BytesIO(b"{}"), **headers)
        assert answer.status_code == 408
        assert answer.get_json() == {"message": "The request's body did not arrive in time."}
        assert answer.headers["X-Request-Id"]


@pytest.fixture
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield both ends: the server's and the client's."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname(), timeout=5) as client,
        listener.accept()[0] as server,
    ):
        yield server, client


@pytest.mark.skipif("sys.platform != 'linux'", reason="only Linux tells how long nothing was sent")
class TestStalledConnections:
    def test_one_on_which_nothing_was_sent_is_ended(
        self, connection: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its server reads the end, and can still send."""
        server, client = connection
        monkeypatch.setattr(slow_clients, "CONNECTION_LIMIT_S", 0.01)
        server.setblocking(False)

        def receive() -> str | None:
            end_stalled_connections(server.getsockname()[1])
            try:
                return server.recv(10).decode() or "end"
            except BlockingIOError:
                return None

        assert eventually(receive) == "end"
        server.sendall(b"408")
        assert client.recv(3) == b"408"

    def test_others_are_left_alone(
        self, connection: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Those to another port, such as PostgreSQL's, and those that have time left."""
        server, client = connection
        end_stalled_connections(server.getsockname()[1])
        monkeypatch.setattr(slow_clients, "CONNECTION_LIMIT_S", -1)
        end_stalled_connections(client.getsockname()[1] + 1)
        client.sendall(b"still here")
        assert server.recv(100) == b"still here"


HALVES = {
    "Content-Length: 100\r\n\r\n{": b"",
    "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n": b"",
    "Content-Length: 60000\r\n\r\n": b"x",
}
"""What is sent of a body, by length or in chunks, and what follows now and then."""


@pytest.mark.stack
def test_slow_clients_hold_up_no_other(
    database_settings: DatabaseSettings, make_application: MakeApplication
) -> None:
    """A merchant begins 120 creates at an API with 16 threads, and strangers send half of 300 headers.

    All other calls are answered meanwhile, creates with 503 and Retry-After. Then each connection is closed.
    """
    known = credentials_of(make_application("Tripoli Coffee"))
    head = f"POST {PATH} HTTP/1.1\r\nHost: api\r\n" + "".join(
        f"{name}: {text}\r\n" for name, text in known.items()
    )
    with running_api(database_settings) as api, ExitStack() as stack:

        def send(text: str) -> socket.socket:
            line = stack.enter_context(socket.create_connection(("127.0.0.1", api.port), timeout=60))
            line.sendall(text.encode())
            return line

        created = api.create(known).json()["data"]["uuid"]
        later = {send(head + half): rest for _ in range(40) for half, rest in HALVES.items()}
        slow = list(later)
        strangers = [send("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ") for _ in range(300)]
        # The others are being waited for: by all but two of the eight threads of each of the two workers.
        eventually(lambda: len(_answered(slow)) == len(slow) - 12)
        waited_for = [line for line in slow if line not in _answered(slow)]
        for _ in range(10):
            assert requests.get(f"http://127.0.0.1:{api.port}/healthz", timeout=30).status_code == 200
            assert requests.get(f"{api.url}/{created}", headers=known, timeout=30).status_code == 200
            refused = api.create(known, merchant_reference="order-2")
            assert (refused.status_code, refused.headers.get("Retry-After")) == (503, "1")
        assert _answered(waited_for) == []
        assert {_read_status(line) for line in slow if line not in waited_for} == {503}

        eventually(lambda: _drip({line: later[line] for line in waited_for}))
        assert {_read_status(line) for line in waited_for} == {408}
        assert {line.recv(100) for line in strangers} == {b""}
        assert api.create(known, merchant_reference="order-2").status_code == 201


def _answered(lines: list[socket.socket]) -> list[socket.socket]:
    return select(lines, [], [], 0)[0]


def _drip(later: dict[socket.socket, bytes]) -> bool:
    """Send more to each that is not answered yet; return whether all are answered."""
    answered = _answered(list(later))
    for line in later.keys() - set(answered):
        line.sendall(later[line])
    return len(answered) == len(later)


def _read_status(line: socket.socket) -> int:
    """Return the status, after the server has closed the connection."""
    answer = b"".join(iter(lambda: line.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert json.loads(body)["message"]
    return int(head.split()[1])
