"""Keeps clients that send slowly from holding up others, in each worker of granian.

granian gives a request a thread when its headers have arrived, and the thread waits for the body, without a limit. Here
some threads never wait for a body: when the others all do, a request with a body is refused with 503 at once. A
connection on which nothing was sent for CONNECTION_LIMIT_S is ended.
"""

import os
import socket
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

from werkzeug.exceptions import RequestTimeout

from shared.platform.web.app import REQUEST_LIMIT_S
from shared.platform.web.errors import ServiceUnavailable

if TYPE_CHECKING:
    from _typeshed.wsgi import InputStream, StartResponse, WSGIApplication, WSGIEnvironment

CONNECTION_LIMIT_S = 2 * REQUEST_LIMIT_S + 1
"""granian ends a connection that waits REQUEST_LIMIT_S for headers; the same again for the body, and one to answer."""
_FREE_THREADS = 2
_PERMIT_WAIT_S = 0.05
"""Bodies that have arrived are read faster than this, even many at once."""
_REFUSE_FOR_S = 1.0
_CHECK_EVERY_S = 1.0
_OPEN_FILES = Path("/proc/self/fd")
_LAST_DATA_SENT = struct.Struct("44xI")  # of the kernel's tcp_info: milliseconds


class BodyLimit:
    """A WSGI application that lets all but _FREE_THREADS of the server's threads wait for bodies."""

    def __init__(self, app: "WSGIApplication", threads: int) -> None:
        self._app = app
        self._permits = _Permits(max(1, threads - _FREE_THREADS))

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        environ["wsgi.input"] = _Body(environ["wsgi.input"], self._permits)
        return self._app(environ, start_response)


class _Permits:
    """Permits to wait for a body."""

    def __init__(self, count: int) -> None:
        self._free: SimpleQueue[None] = SimpleQueue()
        self._refuse_until = 0.0
        for _ in range(count):
            self.release()

    def acquire(self) -> None:
        """Take one. Raises ServiceUnavailable if none is free within milliseconds, or at once if that was so lately."""
        try:
            self._free.get(block=monotonic() >= self._refuse_until, timeout=_PERMIT_WAIT_S)
        except Empty:
            self._refuse_until = monotonic() + _REFUSE_FOR_S
            raise ServiceUnavailable(retry_after=1) from None

    def release(self) -> None:
        self._free.put(None)


class _Body:
    """A body that is read with a permit."""

    __slots__ = ("_body", "_permits", "_started")

    def __init__(self, body: "InputStream", permits: _Permits) -> None:
        self._body = body
        self._permits = permits
        self._started: float | None = None

    def read(self, size: int) -> bytes:
        """Return so many bytes, or all. Raises RequestTimeout after REQUEST_LIMIT_S, or ServiceUnavailable."""
        if self._started is None:
            self._started = monotonic()
        self._permits.acquire()
        try:
            data = self._body.read(size)
        finally:
            self._permits.release()
        if monotonic() - self._started > REQUEST_LIMIT_S:
            raise RequestTimeout("The request's body did not arrive in time.")
        return data


def watch_connections(port: int) -> None:
    """End stalled connections to `port` from now on. Only Linux tells which are."""
    pause = Event()
    while sys.platform == "linux" and not pause.wait(_CHECK_EVERY_S):
        end_stalled_connections(port)


def end_stalled_connections(port: int) -> None:
    """End the connections to `port` of this process on which nothing was sent for CONNECTION_LIMIT_S.

    Only receiving is ended: the thread that waits for the body then has what arrived, and can still answer.
    """
    for connection in _connections(port):
        with suppress(OSError):
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_DATA_SENT.size)
            if _LAST_DATA_SENT.unpack(info)[0] > 1000 * CONNECTION_LIMIT_S:
                connection.shutdown(socket.SHUT_RD)


def _connections(port: int) -> Iterator[socket.socket]:
    """Yield a copy of each connected socket of this process that has this local port."""
    for file in _OPEN_FILES.iterdir():
        with suppress(OSError):  # it has been closed meanwhile, or is not connected
            copy = os.dup(int(file.name))
            if not stat.S_ISSOCK(os.fstat(copy).st_mode):
                os.close(copy)
                continue
            with socket.socket(fileno=copy) as connection:
                is_tcp = connection.family in (socket.AF_INET, socket.AF_INET6)
                if is_tcp and connection.getsockname()[1] == port and connection.getpeername():
                    yield connection
