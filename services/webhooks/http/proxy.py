"""The egress proxy (WEBHOOK_PROXY): every request goes through a tunnel that it opens (CONNECT), also without TLS.

The proxy is asked for an IP address that was looked up and checked here, never for a name, so it cannot resolve the
name to another address. TLS is with the merchant, through the tunnel, and verified for the merchant's name. curl reuses
a tunnel only for the same address, name and port.
"""

import logging
from collections import Counter
from ipaddress import IPv4Address, IPv6Address, ip_address
from math import inf
from time import monotonic

import pycurl

from services.webhooks.http.dns import Destination, is_address
from services.webhooks.metrics import NOT_THROUGH_PROXY
from shared.domain.deliveries.try_results import PROXY_FAILURES, TryFailure
from shared.platform.outbound_url import is_public_address
from shared.platform.settings import ProxySettings

_MAX_TARGETS = 3
"""How many addresses of one name the proxy is asked for, one after the other, if it cannot connect to them."""
_MAX_CONNECT_READS = 64 * 1024
_LOG_INTERVAL_S = 60.0

_log = logging.getLogger(__name__)


class EgressProxy:
    """The proxy as curl is configured with it, and the count and log of its failures. For one thread only."""

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self.destination = Destination(
            settings.host.lower(), settings.port, valid_until=inf if is_address(settings.host) else -inf
        )
        """Where the proxy itself is. Its name is looked up like that of a merchant, but may have a private address."""
        if is_address(settings.host):
            self.destination.addresses = (settings.host,)
        self._unlogged: Counter[str] = Counter()
        self._logged_at = -inf

    def options(self, ca_file: str) -> dict[int, object]:
        settings = self._settings
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        options: dict[int, object] = {
            pycurl.PROXY: f"{'https' if settings.tls else 'http'}://{host}:{settings.port}",
            pycurl.NOPROXY: "",
            pycurl.HTTPPROXYTUNNEL: 1,
            # The signature and the trace are for the merchant only.
            pycurl.HEADEROPT: pycurl.HEADER_SEPARATE,
            pycurl.PROXY_CAINFO: ca_file,
            pycurl.PROXY_CAPATH: None,
            pycurl.PROXY_SSL_VERIFYPEER: 1,
            pycurl.PROXY_SSL_VERIFYHOST: 2,
            pycurl.PROXY_SSLVERSION: pycurl.SSLVERSION_TLSv1_2,
        }
        if settings.user is not None:
            options[pycurl.PROXYAUTH] = pycurl.HTTPAUTH_BASIC
            options[pycurl.PROXYUSERNAME] = settings.user.encode()
            options[pycurl.PROXYPASSWORD] = (settings.password or "").encode()
        return options

    def is_at(self, host: str) -> bool:
        """Return whether this is an address of the proxy. Sockets are opened to no other."""
        return ip_address(host) in map(ip_address, self.destination.addresses)

    def note_end(
        self,
        tunnel: "TunnelSetup",
        destination: Destination,
        failure: TryFailure | None,
        code: int,
        message: str,
    ) -> bool:
        """Note how a request ended. Return False if the proxy could not connect, and there is another address."""
        if failure not in PROXY_FAILURES:
            if destination.last_target != tunnel.targets[0]:
                destination.last_target, destination.targets_from = tunnel.targets[0], None
            return True
        self.note_failure(failure, code, message)
        return failure is not TryFailure.PROXY_ERROR or len(tunnel.targets) == 1

    def note_failure(self, failure: TryFailure, code: int, message: str) -> None:
        """Count a failure, and log it, at most once a minute. `code` is the answer to CONNECT, 0 without one."""
        reason = str(code) if 300 <= code < 600 else failure.removeprefix("proxy_")
        NOT_THROUGH_PROXY.labels(reason).inc()
        self._unlogged[reason] += 1
        if monotonic() - self._logged_at >= _LOG_INTERVAL_S:
            counts = ", ".join(f"{reason} {count}" for reason, count in sorted(self._unlogged.items()))
            _log.warning("webhooks did not get through the egress proxy (%s); the last: %s", counts, message)
            self._unlogged.clear()
            self._logged_at = monotonic()


class TunnelSetup:
    """The tunnel of one request: which addresses to ask for, and whether it is open.

    curl reads the answer to CONNECT byte by byte and calls `count_read` for each. It would read an endless one for as
    long as bytes arrive, whatever the time limit, and nothing else would be sent meanwhile.
    """

    __slots__ = ("_is_accepted", "_reads", "is_waiting", "targets")

    def __init__(self) -> None:
        self.targets: list[str] = []
        """The addresses to ask the proxy for: the first one now, the others if it cannot connect to it."""
        self.is_waiting = False
        """A connection to the proxy was begun, and the tunnel is not open."""
        self._is_accepted = False
        self._reads = 0

    def begin(self) -> None:
        self.is_waiting = True
        self._is_accepted = False
        self._reads = 0

    def take_header(self, line: bytes) -> bool:
        """Return whether this header line belongs to the proxy's answer."""
        if not self.is_waiting:
            return False
        if line.startswith(b"HTTP/"):
            self._is_accepted = line.partition(b" ")[2].startswith(b"2")
        elif line[:1] in b"\r\n":
            self.is_waiting = not self._is_accepted
        return True

    def count_read(self, *_progress: int) -> bool:
        """Return True, which makes curl give up, after too many bytes; this is curl's progress callback."""
        if self.is_waiting:
            self._reads += 1
        return self._reads > _MAX_CONNECT_READS

    def failure(self, error: int, code: int) -> TryFailure | None:
        """Return how the proxy failed; None if it did not. `error` is curl's, `code` the answer to CONNECT or 0.

        With a 2xx, or on a reused connection, the tunnel was open, and what failed is beyond the proxy.
        """
        if code >= 500:
            return TryFailure.PROXY_ERROR
        if code and not 200 <= code < 300:
            return TryFailure.PROXY_REFUSED
        if self.is_waiting or error == pycurl.E_COULDNT_RESOLVE_PROXY:
            return TryFailure.PROXY_UNREACHABLE
        return None


def select_targets(destination: Destination, *, allow_private: bool) -> list[str]:
    """Return the addresses that the proxy may be asked for, as `address:port`; empty if none of them is public."""
    if destination.targets_from is not destination.addresses:
        destination.targets = _sort_targets(destination, allow_private)
        destination.targets_from = destination.addresses
    return list(destination.targets)


def _sort_targets(destination: Destination, allow_private: bool) -> list[str]:
    """First the one that was reached last, so that its tunnel is reused, then IPv4: many proxies have no IPv6."""
    found = dict.fromkeys(map(_parse, destination.addresses))
    allowed = [address for address in found if allow_private or is_public_address(address)]
    targets = [_target(address, destination.port) for address in sorted(allowed, key=lambda ip: ip.version)]
    return sorted(targets, key=lambda target: target != destination.last_target)[:_MAX_TARGETS]


def _parse(text: str) -> IPv4Address | IPv6Address:
    address = ip_address(text)
    return address if isinstance(address, IPv4Address) else address.ipv4_mapped or address


def _target(address: IPv4Address | IPv6Address, port: int) -> str:
    return f"{address}:{port}" if address.version == 4 else f"[{address}]:{port}"
