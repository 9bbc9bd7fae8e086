"""Sends webhooks (§6.3, §6.6): many POSTs in flight from one thread.

libcurl makes the requests; an epoll of our own says which of its sockets can go on, so one that hangs costs nothing.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
from time import monotonic, time
from typing import Generic, TypeVar

import msgspec
import pycurl

from services.webhooks.http.curl_handle import CurlHandle, TrustedCertificates
from services.webhooks.http.dns import Destination, DestinationResolver, ResolveHost, resolve_host
from services.webhooks.http.sockets import SocketPoller
from shared.domain.deliveries.try_results import RESPONSE_BODY_LIMIT, TryFailure


class TryResult(msgspec.Struct, frozen=True):
    began_at: float
    """As `time.time()`."""
    duration_ms: int
    status_code: int | None
    """Of the final answer, once its headers were complete; what became of its body does not matter."""
    failure: TryFailure | None
    """None exactly when there is a status code."""
    body: bytes
    """As it was received, without decoding, cut off at ANSWER_LIMIT."""

    @property
    def is_success(self) -> bool:
        return self.status_code is not None and 200 <= self.status_code < 300


T = TypeVar("T")
InFlightRequest = tuple[CurlHandle, T, float]
"""A courier, the ticket of its post, and when that was begun, by the steady clock."""

_MOST_CONNECTIONS = 4096
_MOST_IDLE_COURIERS = 1000

_log = logging.getLogger(__name__)


class WebhookRequest(msgspec.Struct, frozen=True):
    url: str
    body: bytes
    signature: str
    application: str = ""
    """On whose behalf; one's troubles with names are not the others'."""


class WebhookClient(Generic[T]):
    """Each post that was started comes back exactly once, as its ticket: from `turn` or from `abandon`.

    For one thread; only `wake` is for any.
    """

    def __init__(
        self,
        *,
        allow_private: bool,
        ca_file: Path | None = None,
        limit_s: float = 10.0,
        resolve_host: ResolveHost = resolve_host,
    ) -> None:
        self._allow_private = allow_private
        self._limit_s = limit_s
        self._trusted = TrustedCertificates(ca_file)
        self._sockets = SocketPoller()
        self._destinations = DestinationResolver(
            allow_private=allow_private, resolve_host=resolve_host, on_news=self._sockets.interrupt
        )
        self._multi = self._new_multi()
        self._idle: list[CurlHandle] = []
        self._flying: dict[pycurl.Curl, InFlightRequest[T]] = {}
        self._waiting: dict[Destination, list[InFlightRequest[T]]] = {}
        """For the name of their receiver, which is being looked up."""
        self._ready: list[tuple[T, TryResult]] = []

    @property
    def in_flight(self) -> int:
        return len(self._flying) + len(self._ready) + sum(map(len, self._waiting.values()))

    def start(self, ticket: T, post: WebhookRequest, trace: str | None = None) -> None:
        """`trace` is told to the receiver, where there is one."""
        began = monotonic()
        destination = self._destinations.of(post.url)
        if destination is None:
            self._ready.append((ticket, TryResult(time(), 0, None, TryFailure.BLOCKED_ADDRESS, b"")))
            return
        courier = self._idle.pop() if self._idle else self._new_courier()
        courier.load(post.url, post.body, post.signature, trace)
        flight = (courier, ticket, began)
        if began < destination.known_until:
            self._dispatch(flight, destination, self._limit_s)
        elif destination in self._waiting:
            self._waiting[destination].append(flight)
        else:
            self._waiting[destination] = [flight]
            self._destinations.begin_lookup(destination, post.application)

    def turn(self, wait_s: float) -> list[tuple[T, TryResult]]:
        """Lets the requests go on until some have ended, `wake` was called, or the time is over."""
        deadline = monotonic() + wait_s
        while True:
            if self._waiting:
                self._go_on_with_names()
            try:
                is_woken = self._go_on(deadline)
            except pycurl.error:
                _log.exception("curl gave up, and with it %d requests", len(self._flying))
                self._start_over()
                is_woken = True
            answers = self._collect()
            if answers or is_woken or monotonic() >= deadline:
                return answers

    def wake(self) -> None:
        """Ends the wait of the turn that is under way, or of the next one. From any thread."""
        self._sockets.wake()

    def abandon(self, wanted: Callable[[T], bool]) -> list[T]:
        """Ends these without an answer."""
        flying = [flight for flight in self._flying.values() if wanted(flight[1])]
        for courier, _, _ in flying:
            self._release(courier)
        waiting = [flight for flights in self._waiting.values() for flight in flights if wanted(flight[1])]
        going = {courier for courier, _, _ in waiting}
        for flights in self._waiting.values():
            flights[:] = [flight for flight in flights if flight[0] not in going]
        for courier in going:
            self._rest(courier)
        ready, self._ready = self._ready, []
        abandoned = [ticket for _, ticket, _ in flying + waiting]
        for ticket, answer in ready:
            if wanted(ticket):
                abandoned.append(ticket)
            else:
                self._ready.append((ticket, answer))
        return abandoned

    def close(self) -> None:
        """What is in flight ends without an answer."""
        self.abandon(lambda _: True)
        self._multi.close()
        for courier in self._idle:
            courier.curl.close()
        self._idle.clear()
        self._sockets.close()
        self._trusted.close()

    def _dispatch(self, flight: InFlightRequest[T], destination: Destination, limit_s: float) -> None:
        courier = flight[0]
        courier.prepare(destination, max(1, int(limit_s * 1000)))
        try:
            self._multi.add_handle(courier.curl)
        except pycurl.error:
            _log.exception("curl does not take a request")
            self._give_up(flight, TryFailure.BROKEN_ANSWER)
        else:
            self._flying[courier.curl] = flight

    def _go_on(self, deadline: float) -> bool:
        """One round over the sockets that are ready; whether `wake` has ended it."""
        multi, running = self._multi, len(self._flying)
        if multi.timeout() == 0:
            _, running = multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        has_news = self._ready or running < len(self._flying)
        for socket in self._sockets.wait(0 if has_news else self._pause(deadline)):
            multi.socket_action(socket, 0)
        return self._sockets.was_woken()

    def _pause(self, deadline: float) -> float:
        now = monotonic()
        pause = deadline - now
        curls_pause_ms = self._multi.timeout()
        if curls_pause_ms >= 0:
            pause = min(pause, curls_pause_ms / 1000)
        for flights in self._waiting.values():
            if flights:
                pause = min(pause, flights[0][2] + self._limit_s - now)
        return max(0.0, pause)

    def _go_on_with_names(self) -> None:
        now = monotonic()
        for destination in self._destinations.take_news():
            for flight in self._waiting.pop(destination):
                if destination.resolve_entry:
                    self._dispatch(flight, destination, flight[2] + self._limit_s - now)
                else:
                    self._give_up(flight, TryFailure.DNS)
        for flights in self._waiting.values():
            while flights and flights[0][2] + self._limit_s <= now:
                self._give_up(flights.pop(0), TryFailure.TIMEOUT)

    def _give_up(self, flight: InFlightRequest[T], failure: TryFailure) -> None:
        courier, ticket, began = flight
        elapsed = monotonic() - began
        self._ready.append((ticket, TryResult(time() - elapsed, int(elapsed * 1000), None, failure, b"")))
        self._rest(courier)

    def _collect(self) -> list[tuple[T, TryResult]]:
        answers, self._ready = self._ready, []
        _, succeeded, failed = self._multi.info_read()
        for curl in succeeded:
            answers.append(self._answer(curl, 0))
        for curl, error, _ in failed:
            answers.append(self._answer(curl, error))
        return answers

    def _answer(self, curl: pycurl.Curl, error: int) -> tuple[T, TryResult]:
        courier, ticket, began = self._flying[curl]
        elapsed = monotonic() - began
        status_code = courier.status_code()
        failure = courier.failure(error) if status_code is None else None
        body = courier.body[:RESPONSE_BODY_LIMIT]
        if courier.tells_of is not None:
            courier.tells_of.is_known_to_curl = True
            courier.tells_of = None
        self._release(courier)
        return ticket, TryResult(time() - elapsed, int(elapsed * 1000), status_code, failure, body)

    def _release(self, courier: CurlHandle) -> None:
        del self._flying[courier.curl]
        self._multi.remove_handle(courier.curl)
        self._rest(courier)

    def _rest(self, courier: CurlHandle) -> None:
        if len(self._idle) < _MOST_IDLE_COURIERS and courier.can_be_used_again():
            courier.rest()
            self._idle.append(courier)
        else:
            courier.curl.close()

    def _start_over(self) -> None:
        for flight in self._flying.values():
            self._give_up(flight, TryFailure.BROKEN_ANSWER)
        self._flying.clear()
        self._idle.clear()
        with suppress(pycurl.error):
            self._multi.close()
        self._sockets.forget_all()
        self._multi = self._new_multi()

    def _new_courier(self) -> CurlHandle:
        return CurlHandle(
            allow_private=self._allow_private, trusted=self._trusted, on_open=self._sockets.opened
        )

    def _new_multi(self) -> pycurl.CurlMulti:
        multi = pycurl.CurlMulti()
        multi.setopt(pycurl.M_SOCKETFUNCTION, self._sockets.watch)
        descriptors, _ = getrlimit(RLIMIT_NOFILE)
        most = _MOST_CONNECTIONS if descriptors == RLIM_INFINITY else min(_MOST_CONNECTIONS, descriptors // 8)
        multi.setopt(pycurl.M_MAXCONNECTS, most)  # from there on, idle ones are closed
        return multi
