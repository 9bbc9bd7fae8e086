"""Webhook receivers on loopback: one that replies as configured, and hostile ones that follow a script."""

import heapq
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from selectors import EVENT_READ, EpollSelector
from threading import Event, Thread
from time import monotonic, time
from typing import Self

from services.webhooks.http.client import TryResult, WebhookClient, WebhookRequest
from services.webhooks.http.dns import ResolveHost, resolve_host
from shared.platform.settings import ProxySettings

_REASON = "Because"


@dataclass(frozen=True, slots=True)
class Received:
    path: str
    headers: dict[str, str]
    """By their names in lower case."""
    body: bytes
    at: float
    connection: int
    """Counts the connections; requests on the same one have the same number."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int = 200
    body: bytes = b""
    delay_s: float = 0.0
    hangs: bool = False
    closes: bool = False
    """Close the connection without announcing it in the response."""


class Receiver:
    """Replies as `answer` says, at once or later, over thousands of connections if needed."""

    def __init__(self, answer: Callable[[Received], Reply] | Reply = Reply()) -> None:  # noqa: B008  it is frozen
        self.answer = answer
        self.requests: list[Received] = []
        self.connections = 0
        self._listening = listen()
        self._selector = EpollSelector()
        self._due: list[tuple[float, int, _Connection, Reply]] = []
        self._numbers = count()
        self._interrupted, self._interrupting = socket.socketpair()
        self._thread = Thread(target=self._serve, name="receiver", daemon=True)
        self._is_stopping = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks"

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    @property
    def open_connections(self) -> int:
        return len(self._selector.get_map()) - 2

    def __enter__(self) -> Self:
        self._listening.setblocking(False)
        self._selector.register(self._listening, EVENT_READ)
        self._selector.register(self._interrupted, EVENT_READ)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopping = True
        self._interrupting.send(b"x")
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._interrupting.close()
        self._selector.close()

    def _serve(self) -> None:
        while not self._is_stopping:
            pause = max(0.0, self._due[0][0] - monotonic()) if self._due else None
            for key, _ in self._selector.select(pause):
                if key.fileobj is self._listening:
                    self._accept()
                elif isinstance(key.data, _Connection):
                    self._read(key.data)
            while self._due and self._due[0][0] <= monotonic():
                _, _, connection, reply = heapq.heappop(self._due)
                self._reply(connection, reply)

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            while True:
                accepted, _ = self._listening.accept()
                accepted.setblocking(False)
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.connections += 1
                self._selector.register(accepted, EVENT_READ, _Connection(accepted, self.connections))

    def _read(self, connection: "_Connection") -> None:
        try:
            chunk = connection.socket.recv(65536)
        except OSError:
            chunk = b""
        if not chunk:
            self._close_connection(connection)
            return
        connection.unread += chunk
        while (request := connection.next_request()) is not None:
            self.requests.append(request)
            reply = self.answer if isinstance(self.answer, Reply) else self.answer(request)
            if reply.hangs:
                continue
            if reply.delay_s:
                heapq.heappush(
                    self._due, (monotonic() + reply.delay_s, next(self._numbers), connection, reply)
                )
            else:
                self._reply(connection, reply)

    def _reply(self, connection: "_Connection", reply: Reply) -> None:
        head = f"HTTP/1.1 {reply.status} {_REASON}\r\nContent-Length: {len(reply.body)}\r\n\r\n"
        try:
            connection.socket.sendall(head.encode() + reply.body)
        except OSError:
            return
        if reply.closes:
            self._close_connection(connection)

    def _close_connection(self, connection: "_Connection") -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(connection.socket)
        connection.socket.close()


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    number: int
    unread: bytes = b""

    def next_request(self) -> Received | None:
        head, end, rest = self.unread.partition(b"\r\n\r\n")
        if not end:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return None
        self.unread = rest[length:]
        return Received(first.split(" ")[1], headers, rest[:length], time(), self.number)


Script = Callable[["Peer"], None]


@dataclass(slots=True)
class Peer:
    """The receiver's end of one connection, for a script."""

    socket: socket.socket
    stop: Event

    def read_request(self) -> bytes:
        """Read one whole request."""
        got = b""
        while b"\r\n\r\n" not in got:
            got += self._more()
        head, _, body = got.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        while len(body) < length:
            body += self._more()
        return head + body

    def say(self, what: bytes) -> None:
        self.socket.sendall(what)

    def pause(self, seconds: float) -> None:
        if self.stop.wait(seconds):
            raise ConnectionAbortedError

    def hang(self) -> None:
        """Read until the other side closes the connection."""
        while self._more():
            pass

    def reset(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _more(self) -> bytes:
        chunk = self.socket.recv(65536)
        if not chunk:
            raise ConnectionAbortedError
        return chunk


@dataclass
class ScriptedReceiver:
    """Runs the script on each connection, in a thread of its own, and then closes the connection."""

    script: Script
    tls: ssl.SSLContext | None = None
    address: str = "127.0.0.1"
    reads_requests: bool = True
    """Whether to read the request before the script starts."""
    connections: int = 0
    hung_up: int = 0
    """Connections that the other side closed before the script ended."""
    _stop: Event = field(default_factory=Event)
    _open: set[socket.socket] = field(default_factory=set)
    _threads: list[Thread] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.address}:{self.port}/hooks"

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def __enter__(self) -> Self:
        self._listening = listen(self.address)
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for one in (self._listening, *self._open.copy()):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listening.close()

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = Thread(target=target, args=args, name="scripted receiver", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._stop.is_set():
                accepted, _ = self._listening.accept()
                self.connections += 1
                self._start(self._run_script, accepted)

    def _run_script(self, accepted: socket.socket) -> None:
        self._open.add(accepted)
        try:
            connected = self.tls.wrap_socket(accepted, server_side=True) if self.tls else accepted
        except OSError:
            self._open.discard(accepted)
            accepted.close()
            return
        self._open.discard(accepted)
        self._open.add(connected)
        peer = Peer(connected, self._stop)
        try:
            if self.reads_requests:
                peer.read_request()
            self.script(peer)
        except OSError:
            self.hung_up += 1
        finally:
            self._open.discard(connected)
            connected.close()


def listen(address: str = "127.0.0.1", port: int = 0) -> socket.socket:
    return socket.create_server((address, port), backlog=4096)


@contextmanager
def open_client(
    *,
    allow_private: bool = True,
    limit_s: float = 5.0,
    ca_file: Path | None = None,
    proxy: ProxySettings | None = None,
    resolve_host: ResolveHost = resolve_host,
) -> Iterator[WebhookClient[object]]:
    made: WebhookClient[object] = WebhookClient(
        allow_private=allow_private,
        limit_s=limit_s,
        ca_file=ca_file,
        proxy=proxy,
        resolve_host=resolve_host,
    )
    try:
        yield made
    finally:
        made.close()


def collect(
    client: WebhookClient[object], number: int, within: float = 20.0
) -> list[tuple[object, TryResult]]:
    """Return this many results, in the order in which requests end."""
    deadline = monotonic() + within
    results: list[tuple[object, TryResult]] = []
    while len(results) < number:
        assert monotonic() < deadline, f"{len(results)} of {number} results within {within:g} s"
        results += client.poll(0.5)
    return results


def send_one(
    client: WebhookClient[object], url: str, body: bytes = b"{}", signature: str = "0" * 64
) -> TryResult:
    """Send one request and return its result."""
    client.start(url, WebhookRequest(url, body, signature))
    ((tag, result),) = collect(client, 1)
    assert tag == url
    assert client.in_flight == 0
    assert client.poll(0) == []
    return result
