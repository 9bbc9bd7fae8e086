"""A forward proxy on loopback that answers CONNECT, records what it was asked for, and can misbehave."""

import base64
import select
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from shared.platform.settings import ProxySettings
from tests.webhooks.receivers import Peer, Script, ScriptedReceiver

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to the proxy, before any tunnel."""

    method: str
    target: str
    headers: dict[str, str]
    """By their names in lower case."""
    text: str
    """The whole head of the request."""


@dataclass
class ConnectProxy:
    routes: Mapping[str, int] = field(default_factory=dict)
    """The port on loopback that stands for an address and port: {"93.184.216.34:443": 41234}. Others get 503."""
    tls: ssl.SSLContext | None = None
    credentials: str | None = None
    """As `user:password`; others get 407."""
    answer: Script | None = None
    """What to do instead, once the request was read."""
    asked: list[Asked] = field(default_factory=list)
    upstream: list[bytes] = field(default_factory=list)
    """What clients sent through their tunnels, in pieces."""

    def __post_init__(self) -> None:
        self._receiver = ScriptedReceiver(self._serve, tls=self.tls, reads_requests=False)

    def __enter__(self) -> Self:
        self._receiver.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._receiver.__exit__()

    @property
    def port(self) -> int:
        return self._receiver.port

    @property
    def connections(self) -> int:
        return self._receiver.connections

    @property
    def targets(self) -> list[str]:
        return [asked.target for asked in self.asked]

    def settings(self, host: str = "127.0.0.1") -> ProxySettings:
        user, _, password = (self.credentials or "").partition(":")
        return ProxySettings(host, self.port, self.tls is not None, user or None, password or None)

    def _serve(self, peer: Peer) -> None:
        asked = _read_head(peer.socket)
        self.asked.append(asked)
        port = self.routes.get(asked.target)
        if self.answer is not None:
            self.answer(peer)
        elif self.credentials is not None and not _is_authorized(asked, self.credentials):
            peer.say(b"HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 2\r\n\r\nno")
        elif port is None:
            peer.say(b"HTTP/1.1 503 No route\r\nContent-Length: 5\r\n\r\nsorry")
        else:
            with socket.create_connection(("127.0.0.1", port)) as beyond:
                peer.say(ESTABLISHED)
                _relay(peer.socket, beyond, self.upstream.append)


def _read_head(client: socket.socket) -> Asked:
    got = b""
    while not got.endswith(b"\r\n\r\n"):  # byte by byte: what follows belongs to the tunnel
        byte = client.recv(1)
        if not byte:
            raise ConnectionAbortedError
        got += byte
    text = got.decode("latin-1")
    first, *lines = text.rstrip().split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Asked(method, target, headers, text)


def _is_authorized(asked: Asked, credentials: str) -> bool:
    expected = "Basic " + base64.b64encode(credentials.encode()).decode()
    return asked.headers.get("proxy-authorization") == expected


def _relay(client: socket.socket, beyond: socket.socket, on_upstream: Callable[[bytes], None]) -> None:
    """Copy bytes in both directions until one side closes."""
    with suppress(OSError):
        while True:
            is_pending = isinstance(client, ssl.SSLSocket) and client.pending() > 0
            ready = [client] if is_pending else select.select([client, beyond], [], [], 30)[0]
            for source in ready:
                chunk = source.recv(65536)
                if not chunk:
                    return
                if source is client:
                    on_upstream(chunk)
                    beyond.sendall(chunk)
                else:
                    client.sendall(chunk)
