"""Sends webhooks (§6.3, §6.6): many POST requests in flight from one thread.

libcurl makes the requests. An epoll of our own tells which of its sockets are ready, so a hanging request costs
nothing.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, time
from typing import Generic, TypeVar

import msgspec
import pycurl

from services.webhooks.http.curl_handle import CurlHandle, TrustedCertificates
from services.webhooks.http.dns import (
    Destination,
    DestinationResolver,
    LookupWaiters,
    ResolveHost,
    resolve_host,
)
from services.webhooks.http.proxy import EgressProxy, select_targets
from services.webhooks.http.sockets import SocketPoller
from shared.domain.deliveries.try_results import RESPONSE_BODY_LIMIT, TryFailure
from shared.platform.settings import ProxySettings

T = TypeVar("T")
InFlightRequest = tuple[CurlHandle, T, float]
"""The handle of a request, the caller's tag for it, and when it began (monotonic clock)."""

_MAX_CONNECTIONS = 4096
_MAX_IDLE_HANDLES = 1000

_log = logging.getLogger(__name__)


class WebhookRequest(msgspec.Struct, frozen=True):
    url: str
    body: bytes
    signature: str
    application: str = ""
    """The application that its DNS look-ups are counted for."""


class TryResult(msgspec.Struct, frozen=True):
    """How the request of one try ended (§6.6)."""

    began_at: float
    """As `time.time()`."""
    duration_ms: int
    status_code: int | None
    """The code of the final response if its headers were complete, even if its body was not."""
    failure: TryFailure | None
    """None exactly if there is a status code."""
    body: bytes
    """As received, not decoded, cut off at RESPONSE_BODY_LIMIT."""

    @property
    def is_success(self) -> bool:
        return self.status_code is not None and 200 <= self.status_code < 300


class WebhookClient(Generic[T]):
    """Returns the tag of each started request exactly once, from `poll` or from `abandon`.

    For one thread only, except `wake`.
    """

    def __init__(
        self,
        *,
        allow_private: bool,
        ca_file: Path | None = None,
        proxy: ProxySettings | None = None,
        limit_s: float = 10.0,
        resolve_host: ResolveHost = resolve_host,
    ) -> None:
        self._allow_private = allow_private
        self._proxy = None if proxy is None else EgressProxy(proxy)
        self._limit_s = limit_s
        self._trusted = TrustedCertificates(ca_file)
        self._sockets = SocketPoller()
        self._resolver = DestinationResolver(
            allow_private=allow_private, resolve_host=resolve_host, on_lookup_end=self._sockets.interrupt
        )
        self._multi = self._sockets.open_multi(_MAX_CONNECTIONS)
        self._idle: list[CurlHandle] = []
        self._in_flight: dict[pycurl.Curl, InFlightRequest[T]] = {}
        self._waiting: LookupWaiters[InFlightRequest[T]] = LookupWaiters(lambda request: request[2])
        """Requests that wait for the DNS look-up of their destination, or of the proxy."""
        self._ready: list[tuple[T, TryResult]] = []

    @property
    def in_flight(self) -> int:
        return len(self._in_flight) + len(self._ready) + len(self._waiting)

    def start(self, tag: T, request: WebhookRequest, trace: str | None = None) -> None:
        """Start a request. `trace` is sent to the receiver as its traceparent header."""
        began = monotonic()
        destination = self._resolver.find(request.url)
        if destination is None:
            self._ready.append((tag, TryResult(time(), 0, None, TryFailure.BLOCKED_ADDRESS, b"")))
            return
        handle = self._idle.pop() if self._idle else self._new_handle()
        handle.load(destination, request.url, request.body, request.signature, trace)
        in_flight = (handle, tag, began)
        if began < destination.valid_until:
            self._find_proxy(in_flight, began)
        else:
            self._wait_for(destination, in_flight, request.application)

    def poll(self, wait_s: float) -> list[tuple[T, TryResult]]:
        """Drive the requests until some have ended, `wake` is called, or the time is over. Returns those that ended."""
        deadline = monotonic() + wait_s
        while True:
            if self._waiting.destinations:
                self._finish_lookups()
            try:
                is_woken = self._drive(deadline)
            except pycurl.error:
                _log.exception("curl failed; %d requests in flight are given up", len(self._in_flight))
                self._restart()
                is_woken = True
            results = self._collect()
            if results or is_woken or monotonic() >= deadline:
                return results

    def wake(self) -> None:
        """End the current `poll`, or the next one, early. From any thread."""
        self._sockets.wake()

    def abandon(self, unwanted: Callable[[T], bool]) -> list[T]:
        """End these requests without a result and return their tags."""
        flying = [request for request in self._in_flight.values() if unwanted(request[1])]
        for handle, _, _ in flying:
            self._release(handle)
        waiting = self._waiting.remove(lambda request: unwanted(request[1]))
        for handle, _, _ in waiting:
            self._recycle(handle)
        ready, self._ready = self._ready, []
        abandoned = [tag for _, tag, _ in flying + waiting]
        for tag, result in ready:
            if unwanted(tag):
                abandoned.append(tag)
            else:
                self._ready.append((tag, result))
        return abandoned

    def close(self) -> None:
        """End all requests without a result, and close all connections."""
        self.abandon(lambda _: True)
        self._multi.close()
        for handle in self._idle:
            handle.curl.close()
        self._idle.clear()
        self._sockets.close()
        self._trusted.close()

    def _wait_for(self, destination: Destination, request: InFlightRequest[T], application: str = "") -> None:
        if self._waiting.add(destination, request):
            self._resolver.start_lookup(destination, application)

    def _find_proxy(self, request: InFlightRequest[T], now: float) -> None:
        """Go on with a request whose destination has addresses: with a proxy choose one, and look up the proxy."""
        if self._proxy is not None:
            handle = request[0]
            handle.tunnel.targets = select_targets(handle.destination, allow_private=self._allow_private)
            if not handle.tunnel.targets:
                self._give_up(request, TryFailure.BLOCKED_ADDRESS)
                return
            if now >= self._proxy.destination.valid_until:
                self._wait_for(self._proxy.destination, request)
                return
        self._dispatch(request, now)

    def _dispatch(self, request: InFlightRequest[T], now: float) -> None:
        handle, _, began = request
        handle.prepare(max(1, int((self._limit_s - (now - began)) * 1000)))
        try:
            self._multi.add_handle(handle.curl)
        except pycurl.error:
            _log.exception("curl refused a request")
            self._give_up(request, TryFailure.BROKEN_ANSWER)
        else:
            self._in_flight[handle.curl] = request

    def _drive(self, deadline: float) -> bool:
        """Handle the sockets that are ready, once. Returns whether `wake` was called."""
        multi, running = self._multi, len(self._in_flight)
        if multi.timeout() == 0:
            _, running = multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        has_ended = self._ready or running < len(self._in_flight)
        for socket in self._sockets.wait(0 if has_ended else self._pause(deadline)):
            multi.socket_action(socket, 0)
        return self._sockets.was_woken()

    def _pause(self, deadline: float) -> float:
        now = monotonic()
        pause = deadline - now
        curl_timeout_ms = self._multi.timeout()
        if curl_timeout_ms >= 0:
            pause = min(pause, curl_timeout_ms / 1000)
        if self._waiting:
            pause = min(pause, self._waiting.oldest() + self._limit_s - now)
        return max(0.0, pause)

    def _finish_lookups(self) -> None:
        now = monotonic()
        for destination in self._resolver.finish_lookups():
            is_proxy = self._is_proxy(destination)
            for request in self._waiting.pop(destination):
                if not destination.resolve_entry:
                    self._give_up(request, TryFailure.PROXY_UNREACHABLE if is_proxy else TryFailure.DNS)
                elif is_proxy:
                    self._dispatch(request, now)
                else:
                    self._find_proxy(request, now)
        for late, request in self._waiting.pop_older_than(now - self._limit_s):
            failure = TryFailure.PROXY_UNREACHABLE if self._is_proxy(late) else TryFailure.TIMEOUT
            self._give_up(request, failure)

    def _is_proxy(self, destination: Destination) -> bool:
        return self._proxy is not None and destination is self._proxy.destination

    def _give_up(self, request: InFlightRequest[T], failure: TryFailure) -> None:
        handle, tag, began = request
        elapsed = monotonic() - began
        if self._proxy is not None and failure is TryFailure.PROXY_UNREACHABLE:
            self._proxy.note_failure(failure, 0, "its name could not be looked up")
        self._ready.append((tag, TryResult(time() - elapsed, int(elapsed * 1000), None, failure, b"")))
        self._recycle(handle)

    def _collect(self) -> list[tuple[T, TryResult]]:
        _, succeeded, failed = self._multi.info_read()
        for curl in succeeded:
            self._finish(curl, 0, "")
        for curl, error, message in failed:
            self._finish(curl, error, message)
        results, self._ready = self._ready, []
        return results

    def _finish(self, curl: pycurl.Curl, error: int, message: str) -> None:
        request = handle, tag, began = self._in_flight[curl]
        elapsed = monotonic() - began
        status_code = handle.status_code()
        failure = handle.failure(error) if status_code is None else None
        body = handle.body[:RESPONSE_BODY_LIMIT]
        if handle.new_destination is not None:
            handle.new_destination.is_known_to_curl = True
            handle.new_destination = None
        if self._proxy is not None:
            is_last = self._proxy.note_end(
                handle.tunnel, handle.destination, failure, handle.connect_code(), message
            )
            if not is_last and elapsed < self._limit_s:
                self._ask_for_next_address(request)
                return
        self._release(handle)
        result = TryResult(time() - elapsed, int(elapsed * 1000), status_code, failure, body)
        self._ready.append((tag, result))

    def _ask_for_next_address(self, request: InFlightRequest[T]) -> None:
        handle = request[0]
        del self._in_flight[handle.curl], handle.tunnel.targets[0]
        self._multi.remove_handle(handle.curl)
        handle.reset()
        self._dispatch(request, monotonic())

    def _release(self, handle: CurlHandle) -> None:
        del self._in_flight[handle.curl]
        self._multi.remove_handle(handle.curl)
        self._recycle(handle)

    def _recycle(self, handle: CurlHandle) -> None:
        if len(self._idle) < _MAX_IDLE_HANDLES and handle.is_reusable():
            handle.reset()
            self._idle.append(handle)
        else:
            handle.curl.close()

    def _restart(self) -> None:
        for request in self._in_flight.values():
            self._give_up(request, TryFailure.BROKEN_ANSWER)
        self._in_flight.clear()
        self._idle.clear()
        with suppress(pycurl.error):
            self._multi.close()
        self._sockets.forget_all()
        self._multi = self._sockets.open_multi(_MAX_CONNECTIONS)

    def _new_handle(self) -> CurlHandle:
        return CurlHandle(
            allow_private=self._allow_private,
            trusted=self._trusted,
            on_socket_open=self._sockets.note_opened,
            proxy=self._proxy,
        )
