"""How a request gets to its receiver, and to no other place: URLs judged, names looked up, addresses allowed, TLS.

Names are looked up by threads of our own, one for a name however many requests wait for it. libcurl's resolver has
20 threads and uses two for each request: ten requests to a name whose server keeps silent would stop everybody's.
"""

import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from errno import ECONNREFUSED
from ipaddress import ip_address
from math import inf
from pathlib import Path
from threading import Thread
from time import monotonic
from urllib.parse import urlsplit

import certifi
import pycurl

from services.webhooks.answers import ANSWER_LIMIT, Failure
from shared.webhook_url import WebhookUrlError, check_webhook_url, is_public_address

LookUp = Callable[[str, int], Sequence[str]]

_NAMES_KNOWN_S = 30.0
_CURL_KNOWS_NAMES_S = 60  # longer, so that what we take for known is known to curl too
_MOST_LOOKUPS = 100
_MOST_ADDRESSES = 16
_MOST_URLS = 20_000
_MOST_HEADERS_KEPT = 16 * 1024
_PORTS = {"https": 443, "http": 80}
_IDLE_CONNECTION_KEPT_S = 30
_CONNECTION_KEPT_S = 120  # by then the name may mean another address

_FAILURES = {
    pycurl.E_COULDNT_RESOLVE_HOST: Failure.DNS,
    pycurl.E_COULDNT_CONNECT: Failure.UNREACHABLE,
    pycurl.E_OPERATION_TIMEDOUT: Failure.TIMEOUT,
    pycurl.E_URL_MALFORMAT: Failure.BLOCKED_ADDRESS,
    pycurl.E_PEER_FAILED_VERIFICATION: Failure.TLS,
    pycurl.E_SSL_CACERT_BADFILE: Failure.TLS,
    pycurl.E_SSL_CERTPROBLEM: Failure.TLS,
    pycurl.E_SSL_CIPHER: Failure.TLS,
    pycurl.E_SSL_CONNECT_ERROR: Failure.TLS,
    pycurl.E_SSL_INVALIDCERTSTATUS: Failure.TLS,
    pycurl.E_SSL_ISSUER_ERROR: Failure.TLS,
}


@dataclass(eq=False, slots=True)
class Destination:
    """A host and port. `resolve_entry` tells curl what a name means; it is empty when that is not known."""

    host: str
    port: int
    known_until: float
    resolve_entry: str = ""
    is_known_to_curl: bool = True


class Destinations:
    """For one thread; `on_news` is called from others, when there is something for `take_news`."""

    def __init__(self, *, allow_private: bool, look_up: LookUp, on_news: Callable[[], None]) -> None:
        self._allow_private = allow_private
        self._look_up = look_up
        self._on_news = on_news
        self._of_url: dict[str, Destination | None] = {}
        self._of_host: dict[tuple[str, int], Destination] = {}
        self._queued: deque[Destination] = deque()
        self._running = 0
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

    def begin_lookup(self, destination: Destination) -> None:
        if self._running >= _MOST_LOOKUPS:
            self._queued.append(destination)
            return
        self._running += 1
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
            self._running -= 1
            destination.resolve_entry = ""
            if addresses:
                destination.known_until = monotonic() + _NAMES_KNOWN_S
                destination.resolve_entry = f"+{destination.host}:{destination.port}:{','.join(addresses)}"
                destination.is_known_to_curl = False
            news.append(destination)
        while self._queued and self._running < _MOST_LOOKUPS:
            self.begin_lookup(self._queued.popleft())
        return news

    def _judge(self, url: str) -> Destination | None:
        try:
            parts = urlsplit(check_webhook_url(url, allow_private=self._allow_private))
        except WebhookUrlError:
            return None
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        known = self._of_host.get((host, port))
        if known is None:
            known = Destination(host, port, known_until=inf if _is_address(host) else -inf)
            self._of_host[host, port] = known
        return known

    def _run_lookup(self, destination: Destination) -> None:
        addresses: Sequence[str] = ()
        try:
            addresses = self._look_up(destination.host, destination.port)
        except OSError:
            pass  # no address: that says it all
        finally:
            self._end_lookup(destination, addresses)

    def _end_lookup(self, destination: Destination, addresses: Sequence[str]) -> None:
        self._ended.append((destination, addresses))
        self._on_news()


def look_up(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]).partition("%")[0] for *_, address in found))[:_MOST_ADDRESSES]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class TrustedCertificates:
    """Those of certifi, and the operator's own. In a file: what curl gets in memory it reads again each time."""

    def __init__(self, ca_file: Path | None) -> None:
        self.path = certifi.where()
        self._memory_file: int | None = None
        if ca_file is not None:
            both = Path(self.path).read_bytes() + b"\n" + ca_file.read_bytes()
            self._memory_file = os.memfd_create("trusted certificates")
            self.path = f"/proc/self/fd/{self._memory_file}"
            Path(self.path).write_bytes(both)

    def close(self) -> None:
        if self._memory_file is not None:
            os.close(self._memory_file)
            self._memory_file = None


class Courier:
    """A curl handle, with what it brings back. It takes one post after another."""

    __slots__ = (
        "_allow_private",
        "_on_open",
        "body",
        "curl",
        "headers",
        "is_refused",
        "tells_of",
        "timeout_ms",
        "url",
    )

    def __init__(
        self, *, allow_private: bool, trusted: TrustedCertificates, on_open: Callable[[int], None]
    ) -> None:
        self._allow_private = allow_private
        self._on_open = on_open
        self.body = b""
        self.headers: deque[bytes] = deque(maxlen=16)
        """The last lines. All of them can be megabytes."""
        self.is_refused = False
        """Whether there was an address that must not be connected to."""
        self.tells_of: Destination | None = None
        """The name that is made known to curl with this request."""
        self.timeout_ms = 0
        self.url = ""
        self.curl = pycurl.Curl()
        for option, value in self._options(trusted).items():
            self.curl.setopt(option, value)

    def load(self, url: str, body: bytes, signature: str) -> None:
        setopt = self.curl.setopt
        if self.url != url:
            setopt(pycurl.URL, url)
            self.url = url
        setopt(pycurl.POSTFIELDS, body)
        setopt(
            pycurl.HTTPHEADER,
            ("Content-Type: application/json", "Service-Signature: " + signature, "Expect:"),
        )

    def prepare(self, destination: Destination, timeout_ms: int) -> None:
        if self.timeout_ms != timeout_ms:
            self.curl.setopt(pycurl.TIMEOUT_MS, timeout_ms)
            self.timeout_ms = timeout_ms
        if not destination.is_known_to_curl:
            self.curl.setopt(pycurl.RESOLVE, [destination.resolve_entry])
            self.tells_of = destination

    def can_be_used_again(self) -> bool:
        """Not if curl still has news of a name to read, for they get old; nor with large headers, for it keeps them."""
        return self.tells_of is None and self.curl.getinfo(pycurl.HEADER_SIZE) <= _MOST_HEADERS_KEPT

    def rest(self) -> None:
        """Nothing is left of the last post."""
        self.body = b""
        self.headers.clear()
        self.is_refused = False

    def status_code(self) -> int | None:
        """Of the final answer, if its headers were complete."""
        code = int(self.curl.getinfo(pycurl.RESPONSE_CODE))
        return code if code >= 200 and (self.body or self._has_all_headers()) else None

    def failure(self, error: int) -> Failure:
        """`error` is curl's; it can be none when the receiver hung up in the middle of its headers."""
        if self.is_refused and not self.curl.getinfo(pycurl.CONNECT_TIME_T):
            return Failure.BLOCKED_ADDRESS
        if self.curl.getinfo(pycurl.RESPONSE_CODE) == 101:  # nothing to wait for any more
            return Failure.BROKEN_ANSWER
        if error == pycurl.E_COULDNT_CONNECT and self.curl.getinfo(pycurl.OS_ERRNO) == ECONNREFUSED:
            return Failure.REFUSED
        return _FAILURES.get(error, Failure.BROKEN_ANSWER)

    def _has_all_headers(self) -> bool:
        """After the empty line at their end there can be trailers; before it the status line comes."""
        for line in reversed(self.headers):
            if line[:1] in b"\r\n" and line[-1:] == b"\n":
                return True
            if line.startswith(b"HTTP/"):
                return False
        return False

    def _take_body(self, chunk: bytes) -> int | None:
        self.body += chunk
        return None if len(self.body) < ANSWER_LIMIT else 0  # none taken: curl hangs up

    def _open_socket(self, _purpose: int, address: pycurl.CurlSockAddr) -> int:
        """curl connects to the very address that is judged here."""
        if not self._may_connect(address.family, address.addr[0]):
            self.is_refused = True
            return int(pycurl.SOCKET_BAD)
        try:
            opened = socket.socket(address.family, address.socktype, address.protocol).detach()
        except OSError:
            return int(pycurl.SOCKET_BAD)
        self._on_open(opened)
        return opened

    def _may_connect(self, family: int, host: str) -> bool:
        if family not in (socket.AF_INET, socket.AF_INET6):
            return False
        return self._allow_private or is_public_address(ip_address(host))

    def _options(self, trusted: TrustedCertificates) -> dict[int, object]:
        protocols = pycurl.PROTO_HTTPS | (pycurl.PROTO_HTTP if self._allow_private else 0)
        return {
            pycurl.POST: 1,
            pycurl.USERAGENT: "Mizan",
            pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
            pycurl.HTTP09_ALLOWED: 0,
            pycurl.HTTP_CONTENT_DECODING: 0,
            pycurl.PROTOCOLS: protocols,
            pycurl.REDIR_PROTOCOLS: protocols,
            pycurl.FOLLOWLOCATION: 0,
            pycurl.PROXY: "",
            pycurl.NOPROXY: "*",
            pycurl.NETRC: pycurl.NETRC_IGNORED,
            pycurl.NOSIGNAL: 1,
            pycurl.SSL_VERIFYPEER: 1,
            pycurl.SSL_VERIFYHOST: 2,
            pycurl.SSLVERSION: pycurl.SSLVERSION_TLSv1_2,
            pycurl.CAINFO: trusted.path,
            pycurl.CAPATH: None,
            pycurl.DNS_CACHE_TIMEOUT: _CURL_KNOWS_NAMES_S,
            pycurl.MAXAGE_CONN: _IDLE_CONNECTION_KEPT_S,
            pycurl.MAXLIFETIME_CONN: _CONNECTION_KEPT_S,
            pycurl.HEADERFUNCTION: self.headers.append,
            pycurl.WRITEFUNCTION: self._take_body,
            pycurl.OPENSOCKETFUNCTION: self._open_socket,
        }
