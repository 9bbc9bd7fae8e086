"""Refuses requests when more arrive than a worker of granian can answer: 503 with Retry-After, before any work.

granian queues requests until one of its threads is free. It neither limits how long nor tells it. So each worker sends
a request of its own, the probe, through its own queue again and again. The queue is first in, first out: while a probe
waits, each request that gets a thread arrived before the probe, so it has waited longer. If that is too long, the
request is refused, which takes a small part of the time of an answer, and the queue becomes short.

The limits follow CoDel: a queue that a burst has filled may take MAX_WAIT_S to be emptied. If it takes longer, the load
is more than a burst, and a long queue would only delay those that are accepted: OVERLOADED_WAIT_S is enough then.
"""

import json
import logging
import os
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from math import inf
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

from prometheus_client import Counter

from services.api.app import SERVICE
from shared.platform.web.errors import UNAVAILABLE_MESSAGE
from shared.platform.web.health import OPERATIONS_PATHS
from shared.platform.web.middleware import RequestMetrics
from shared.platform.web.request_context import REQUEST_ID_HEADER, assign_request_id

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

MAX_WAIT_S = 0.4
"""A request that has waited longer for a thread is refused."""
OVERLOADED_WAIT_S = 0.1
"""The same from the first refusal until a probe has waited less than this."""
_PROBE_EVERY_S = 0.25
"""Rarely, because an idle service should be idle. A burst is noticed so much later."""
_OVERLOADED_PROBE_EVERY_S = 0.02
"""Nothing is refused between two probes."""
_PROBE_LIMIT_S = 10.0
"""A probe that is not answered within this time is given up. Until the next one waits, nothing is refused."""
_RECONNECT_AFTER_S = 1.0
_MAX_CONNECTS = 20
_RETRY_AFTER = ("Retry-After", "1")
_BODY = json.dumps({"message": UNAVAILABLE_MESSAGE}).encode()

REFUSED_REQUESTS = Counter(
    "mizan_api_overload_refusals", "Requests refused because they had waited too long for a thread"
)
_log = logging.getLogger(__name__)


class LoadShedding:
    """A WSGI application that refuses what has waited too long. Health checks and metrics are never refused."""

    def __init__(self, app: "WSGIApplication", probe: "QueueProbe") -> None:
        self._app = app
        self._probe = probe
        self._metrics = RequestMetrics(SERVICE)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        probe = self._probe
        path = environ["PATH_INFO"]
        if path == probe.path:
            return _answer_probe(start_response)
        waited_s = monotonic() - probe.sent_at
        if waited_s > probe.limit_s and path not in OPERATIONS_PATHS:
            probe.begin_overload()
            return self._refuse(environ, start_response, waited_s)
        return self._app(environ, start_response)

    def _refuse(
        self, environ: "WSGIEnvironment", start_response: "StartResponse", waited_s: float
    ) -> Iterable[bytes]:
        """Answer 503. There is no access log line: thousands a second would cost as much as the refusals."""
        REFUSED_REQUESTS.inc()
        self._metrics.count(environ["REQUEST_METHOD"], None, "503", waited_s)
        start_response(
            "503 SERVICE UNAVAILABLE",
            [
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(_BODY))),
                _RETRY_AFTER,
                (REQUEST_ID_HEADER, assign_request_id(environ)),
            ],
        )
        return [_BODY]


def _answer_probe(start_response: "StartResponse") -> Iterable[bytes]:
    """Answer with the process that has answered: the kernel may give a connection to any worker."""
    pid = str(os.getpid()).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(pid)))])
    return [pid]


class QueueProbe:
    """Sends probes to this worker from a thread of its own, and says how long the current one has waited."""

    def __init__(self, address: tuple[str, int], path: str) -> None:
        """`path` is known to the workers only: an outsider could not do harm with it, but cause useless calls."""
        self.path = path
        self.sent_at = inf
        """When the probe that waits was sent, by the monotonic clock; infinity if none waits."""
        self.limit_s = MAX_WAIT_S
        """How long a request may have waited."""
        self._stopped = Event()
        host, port = address
        self._address = (_LOOPBACK.get(host, host), port)
        self._request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        self._answer_end = b"\r\n\r\n" + str(os.getpid()).encode()

    def begin_overload(self) -> None:
        """Lower the limit, until a probe finds the queue short again."""
        if self.limit_s != OVERLOADED_WAIT_S:
            self.limit_s = OVERLOADED_WAIT_S
            _log.warning("overloaded: requests that wait longer than %g s are refused", OVERLOADED_WAIT_S)

    def run(self) -> None:
        """Send probes until stopped. While the worker cannot be reached, nothing is refused."""
        while not self._stopped.is_set():
            try:
                with self._connect() as connection:
                    while not self._stopped.wait(self._pause_s()):
                        self._measure(connection)
            except OSError as error:
                _log.debug("no probe of the request queue: %s", error)
            finally:
                self.sent_at = inf
            self._stopped.wait(_RECONNECT_AFTER_S)

    def stop(self) -> None:
        self._stopped.set()

    def _pause_s(self) -> float:
        return _PROBE_EVERY_S if self.limit_s == MAX_WAIT_S else _OVERLOADED_PROBE_EVERY_S

    def _connect(self) -> socket.socket:
        """Return a connection to this very worker. Raises OSError if there is none to be had."""
        with ExitStack() as others:
            for _ in range(_MAX_CONNECTS):
                connection = socket.create_connection(self._address, _PROBE_LIMIT_S)
                try:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    is_own = self._ask(connection)
                except BaseException:
                    connection.close()
                    raise
                if is_own:
                    return connection
                others.enter_context(connection)
        raise ConnectionError("the kernel gave all connections to other workers")

    def _measure(self, connection: socket.socket) -> None:
        """Send a probe. If it finds the queue short, an overload has ended."""
        sent_at = self.sent_at = monotonic()
        is_own = self._ask(connection)
        self.sent_at = inf
        if not is_own:
            raise ConnectionError("another worker answered")
        if self.limit_s != MAX_WAIT_S and monotonic() - sent_at < OVERLOADED_WAIT_S:
            self.limit_s = MAX_WAIT_S
            _log.warning("no longer overloaded")

    def _ask(self, connection: socket.socket) -> bool:
        """Send a probe, wait, and return whether this worker answered it. Raises OSError if nobody did."""
        connection.sendall(self._request)
        answer = b""
        while not _is_complete(answer):
            chunk = connection.recv(4096)
            if not chunk:
                raise ConnectionError("the connection was closed")
            answer += chunk
        return answer.endswith(self._answer_end)


def _is_complete(answer: bytes) -> bool:
    head, blank, body = answer.partition(b"\r\n\r\n")
    return bool(blank) and len(body) >= int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])


_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  to connect to, not to listen on
