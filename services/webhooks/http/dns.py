"""Where a URL leads: judged, its name looked up by threads of our own, one for a name however many wait for it.

libcurl's resolver has 20 threads and uses two for each request: ten requests to a name whose server keeps silent would
stop everybody's.
"""

import socket
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from math import inf
from threading import Thread
from time import monotonic

import pycurl

from shared.platform.outbound_url import WebhookUrlError, check_webhook_url

ResolveHost = Callable[[str, int], Sequence[str]]

_NAMES_KNOWN_S = 30.0
_MOST_LOOKUPS = 100
_MOST_LOOKUPS_EACH = 5
_MOST_ADDRESSES = 16
_MOST_URLS = 20_000


@dataclass(eq=False, slots=True)
class Destination:
    """A host and port. `resolve_entry` tells curl what a name means; it is empty when that is not known."""

    host: str
    port: int
    known_until: float
    resolve_entry: str = ""
    looked_up_for: str = ""
    is_known_to_curl: bool = True


class DestinationResolver:
    """For one thread; `on_news` is called from others, when there is something for `take_news`."""

    def __init__(
        self, *, allow_private: bool, resolve_host: ResolveHost, on_news: Callable[[], None]
    ) -> None:
        self._allow_private = allow_private
        self._resolve_host = resolve_host
        self._on_news = on_news
        self._of_url: dict[str, Destination | None] = {}
        self._of_host: dict[tuple[str, int], Destination] = {}
        self._queued: deque[Destination] = deque()
        self._running: Counter[str] = Counter()
        """Lookups under way, by application: one with many names whose servers keep silent stops nobody else's."""
        self._ended: deque[tuple[Destination, Sequence[str]]] = deque()

    def of(self, url: str) -> Destination | None:
        """None if no webhook may go to this URL."""
        try:
            return self._of_url[url]
        except KeyError:
            if len(self._of_url) >= _MOST_URLS:
                self._of_url.clear()
                self._of_host.clear()
            destination = self._of_url[url] = self._judge(url)
            return destination

    def begin_lookup(self, destination: Destination, application: str) -> None:
        destination.looked_up_for = application
        if self._running[application] >= _MOST_LOOKUPS_EACH or self._running.total() >= _MOST_LOOKUPS:
            self._queued.append(destination)
            return
        self._running[application] += 1
        # A daemon: one that hangs does not keep the process from ending.
        thread = Thread(target=self._run_lookup, args=(destination,), name="lookup", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # there are too many already
            self._end_lookup(destination, ())

    def take_news(self) -> list[Destination]:
        """The names whose lookups have ended: known for a while, or without an address."""
        news = []
        while self._ended:
            destination, addresses = self._ended.popleft()
            self._running[destination.looked_up_for] -= 1
            destination.resolve_entry = ""
            if addresses:
                destination.known_until = monotonic() + _NAMES_KNOWN_S
                destination.resolve_entry = f"+{destination.host}:{destination.port}:{','.join(addresses)}"
                destination.is_known_to_curl = False
            news.append(destination)
        queued, self._queued = self._queued, deque()
        for destination in queued:
            self.begin_lookup(destination, destination.looked_up_for)
        self._running += Counter()  # forgets those with none
        return news

    def _judge(self, url: str) -> Destination | None:
        try:
            parts = pycurl.CurlUrl(check_webhook_url(url, allow_private=self._allow_private))
        except (WebhookUrlError, pycurl.error):
            return None
        host = parts.host.strip("[]").lower()
        port = int(parts.getpart(pycurl.UPART_PORT, pycurl.U_DEFAULT_PORT))
        known = self._of_host.get((host, port))
        if known is None:
            known = Destination(host, port, known_until=inf if _is_address(host) else -inf)
            self._of_host[host, port] = known
        return known

    def _run_lookup(self, destination: Destination) -> None:
        addresses: Sequence[str] = ()
        try:
            addresses = self._resolve_host(destination.host, destination.port)
        except OSError:
            pass  # no address: that says it all
        finally:
            self._end_lookup(destination, addresses)

    def _end_lookup(self, destination: Destination, addresses: Sequence[str]) -> None:
        self._ended.append((destination, addresses))
        self._on_news()


def resolve_host(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]).partition("%")[0] for *_, address in found))[:_MOST_ADDRESSES]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
