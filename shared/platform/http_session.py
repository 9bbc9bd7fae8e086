"""HTTP sessions that the environment cannot change, and responses that are bounded in time and size."""

import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Timer
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connectionpool import HTTPConnectionPool


def open_http_session() -> requests.Session:
    """Return a session without a proxy and without credentials from the environment or a home directory."""
    session = requests.Session()
    session.trust_env = False
    return session


class BoundedSession(requests.Session):
    """A session for one request. It shuts the connection down `limit_s` seconds after it was opened.

    Timeouts of sockets do not suffice: they restart with every byte received. `on_connect` may raise, before anything
    is sent.
    """

    def __init__(self, limit_s: float, on_connect: Callable[[], None] | None = None) -> None:
        super().__init__()
        self.trust_env = False
        self._limit_s = limit_s
        self._on_connect = on_connect
        self._timer: Timer | None = None
        self.mount("http://", _Adapter(self._connected))
        self.mount("https://", _Adapter(self._connected))

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Treat a redirect like any other response. By default, requests reads its whole body."""

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().close()

    def _connected(self, connection: socket.socket) -> None:
        if self._on_connect is not None:
            self._on_connect()
        self._timer = Timer(self._limit_s, _shut_down, [connection])
        self._timer.daemon = True
        self._timer.start()


def read_body(response: requests.Response, max_bytes: int) -> bytes | None:
    """Return the body of a response with `stream=True`, or None if it is longer than this."""
    read = bytearray()
    for chunk in response.iter_content(4096):
        read += chunk
        if len(read) > max_bytes:
            return None
    return bytes(read)


def _shut_down(connection: socket.socket) -> None:
    with suppress(OSError):  # already closed
        connection.shutdown(socket.SHUT_RDWR)


class _Adapter(HTTPAdapter):
    def __init__(self, connected: Callable[[socket.socket], None]) -> None:
        self._connected = connected
        super().__init__()

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> HTTPConnectionPool:
        pool: HTTPConnectionPool = super().get_connection_with_tls_context(*args, **kwargs)  # type: ignore[assignment]
        pool.ConnectionCls = _reporting(pool.ConnectionCls, self._connected)
        return pool


def _reporting(connection_class: Any, connected: Callable[[socket.socket], None]) -> Any:
    class ReportingConnection(connection_class):  # type: ignore[misc]
        def connect(self) -> None:
            super().connect()
            connected(self.sock)

    return ReportingConnection
