"""Destinations of URLs: which URLs are allowed, and DNS look-ups in threads of our own, one per host name at a time.

libcurl's resolver has 20 threads and uses two for each request. Ten requests to a name whose DNS server does not
respond would block the requests of all applications.
"""

import socket
from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from math import inf
from threading import Thread
from time import monotonic
from typing import Generic, TypeVar

import pycurl

from shared.platform.outbound_url import WebhookUrlError, check_webhook_url

R = TypeVar("R")
ResolveHost = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a host and port; raises OSError if there are none."""

_ADDRESSES_VALID_S = 30.0
_MAX_LOOKUPS = 100
_MAX_LOOKUPS_PER_APPLICATION = 5
_MAX_ADDRESSES = 16
_MAX_URLS = 20_000


@dataclass(eq=False, slots=True)
class Destination:
    """A host and port, with its addresses once they are known."""

    host: str
    port: int
    valid_until: float
    """When its addresses must be looked up again (monotonic clock)."""
    addresses: Sequence[str] = ()
    """What the last look-up found, or the host itself if it is an address."""
    resolve_entry: str = ""
    """The addresses in the form of CURLOPT_RESOLVE; empty if the last look-up found none."""
    looked_up_for: str = ""
    """The application that the look-up is counted for."""
    is_known_to_curl: bool = True
    targets: Sequence[str] = ()
    """Those of its addresses that an egress proxy may be asked for, as `address:port`, the best first."""
    targets_from: Sequence[str] | None = None
    """The addresses that `targets` was made from; None if it has to be made again."""
    last_target: str = ""
    """The target that was reached last."""


class DestinationResolver:
    """Finds the destination of a URL and looks up its addresses. For one thread only.

    `on_lookup_end` is called from other threads when `finish_lookups` has something to return.
    """

    def __init__(
        self, *, allow_private: bool, resolve_host: ResolveHost, on_lookup_end: Callable[[], None]
    ) -> None:
        self._allow_private = allow_private
        self._resolve_host = resolve_host
        self._on_lookup_end = on_lookup_end
        self._by_url: dict[str, Destination | None] = {}
        self._by_host: dict[tuple[str, int], Destination] = {}
        self._queued: deque[Destination] = deque()
        self._running: Counter[str] = Counter()
        """Running look-ups by application. Each has a limit, so slow DNS servers of one do not block the others."""
        self._ended: deque[tuple[Destination, Sequence[str]]] = deque()

    def find(self, url: str) -> Destination | None:
        """Return the destination of a URL, or None if no webhook may be sent to this URL."""
        try:
            return self._by_url[url]
        except KeyError:
            if len(self._by_url) >= _MAX_URLS:
                self._by_url.clear()
                self._by_host.clear()
            destination = self._by_url[url] = self._check(url)
            return destination

    def start_lookup(self, destination: Destination, application: str) -> None:
        """Look up the addresses in a thread, or later if too many look-ups are running."""
        destination.looked_up_for = application
        if (
            self._running[application] >= _MAX_LOOKUPS_PER_APPLICATION
            or self._running.total() >= _MAX_LOOKUPS
        ):
            self._queued.append(destination)
            return
        self._running[application] += 1
        # A daemon thread: a look-up that hangs does not keep the process from exiting.
        thread = Thread(target=self._look_up, args=(destination,), name="lookup", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system allows no more threads
            self._end_lookup(destination, ())

    def finish_lookups(self) -> list[Destination]:
        """Return the destinations whose look-ups have ended, with or without addresses, and start queued look-ups."""
        finished = []
        while self._ended:
            destination, addresses = self._ended.popleft()
            self._running[destination.looked_up_for] -= 1
            destination.addresses = addresses
            destination.resolve_entry = ""
            if addresses:
                destination.valid_until = monotonic() + _ADDRESSES_VALID_S
                destination.resolve_entry = f"+{destination.host}:{destination.port}:{','.join(addresses)}"
                destination.is_known_to_curl = False
            finished.append(destination)
        queued, self._queued = self._queued, deque()
        for destination in queued:
            self.start_lookup(destination, destination.looked_up_for)
        self._running += Counter()  # removes applications with no look-up
        return finished

    def _check(self, url: str) -> Destination | None:
        try:
            parts = pycurl.CurlUrl(check_webhook_url(url, allow_private=self._allow_private))
        except (WebhookUrlError, pycurl.error):
            return None
        host = parts.host.strip("[]").lower()
        port = int(parts.getpart(pycurl.UPART_PORT, pycurl.U_DEFAULT_PORT))
        destination = self._by_host.get((host, port))
        if destination is None:
            destination = Destination(host, port, valid_until=-inf)
            if is_address(host):
                destination.addresses, destination.valid_until = (host,), inf
            self._by_host[host, port] = destination
        return destination

    def _look_up(self, destination: Destination) -> None:
        addresses: Sequence[str] = ()
        try:
            addresses = self._resolve_host(destination.host, destination.port)
        except OSError:
            pass  # no address
        finally:
            self._end_lookup(destination, addresses)

    def _end_lookup(self, destination: Destination, addresses: Sequence[str]) -> None:
        self._ended.append((destination, addresses))
        self._on_lookup_end()


class LookupWaiters(Generic[R]):
    """Requests that wait for the look-up of a destination, oldest first."""

    def __init__(self, began_at: Callable[[R], float]) -> None:
        self._began_at = began_at
        self.destinations: dict[Destination, list[R]] = {}
        """Those that are looked up, also if nothing waits for them any more."""

    def __len__(self) -> int:
        return sum(map(len, self.destinations.values()))

    def add(self, destination: Destination, request: R) -> bool:
        """Return whether it is the first one: the caller has to start the look-up."""
        if destination in self.destinations:
            insort(self.destinations[destination], request, key=self._began_at)
            return False
        self.destinations[destination] = [request]
        return True

    def pop(self, destination: Destination) -> list[R]:
        """Return the requests of a destination whose look-up has ended."""
        return self.destinations.pop(destination)

    def pop_older_than(self, began_at: float) -> Iterator[tuple[Destination, R]]:
        for destination, requests in self.destinations.items():
            while requests and self._began_at(requests[0]) <= began_at:
                yield destination, requests.pop(0)

    def oldest(self) -> float:
        """Return when the oldest request began; inf if none waits."""
        return min(
            (self._began_at(requests[0]) for requests in self.destinations.values() if requests), default=inf
        )

    def remove(self, unwanted: Callable[[R], bool]) -> list[R]:
        removed = [
            request for requests in self.destinations.values() for request in requests if unwanted(request)
        ]
        for requests in self.destinations.values():
            requests[:] = [request for request in requests if not unwanted(request)]
        return removed


def resolve_host(host: str, port: int) -> list[str]:
    """Return the addresses of a host, from the system's resolver. Raises OSError if there are none."""
    found = socket.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]).partition("%")[0] for *_, address in found))[:_MAX_ADDRESSES]


def is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
