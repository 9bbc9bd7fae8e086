"""A reusable curl handle: its options, the addresses it may connect to, and what it receives."""

import os
import socket
from collections import deque
from collections.abc import Callable
from errno import ECONNREFUSED
from io import BytesIO
from ipaddress import ip_address
from pathlib import Path

import certifi
import pycurl

from services.webhooks.http.dns import Destination
from services.webhooks.http.proxy import EgressProxy, TunnelSetup
from shared.domain.deliveries.signing import CONTENT_TYPE, SIGNATURE_HEADER, USER_AGENT
from shared.domain.deliveries.try_results import RESPONSE_BODY_LIMIT, TryFailure
from shared.platform.outbound_url import is_public_address
from shared.platform.tracing.traceparent import HEADER as TRACE_HEADER

_CONTENT_TYPE = f"Content-Type: {CONTENT_TYPE}"
_SIGNATURE = f"{SIGNATURE_HEADER}: "
_TRACE = f"{TRACE_HEADER}: "
_CURL_DNS_CACHE_S = (
    60  # longer than our own cache, so that curl still has every address that we consider valid
)
_MAX_REUSABLE_HEADER_BYTES = 16 * 1024
_MAX_IDLE_CONNECTION_S = 4
"""Less than the 5 seconds or more after which most servers close idle connections: a request that meets such a close is
sent twice."""
_MAX_CONNECTION_S = 120  # after that the name may have another address

_FAILURES = {
    pycurl.E_COULDNT_RESOLVE_HOST: TryFailure.DNS,
    pycurl.E_COULDNT_CONNECT: TryFailure.UNREACHABLE,
    pycurl.E_OPERATION_TIMEDOUT: TryFailure.TIMEOUT,
    pycurl.E_URL_MALFORMAT: TryFailure.BLOCKED_ADDRESS,
    pycurl.E_PEER_FAILED_VERIFICATION: TryFailure.TLS,
    pycurl.E_SSL_CACERT_BADFILE: TryFailure.TLS,
    pycurl.E_SSL_CERTPROBLEM: TryFailure.TLS,
    pycurl.E_SSL_CIPHER: TryFailure.TLS,
    pycurl.E_SSL_CONNECT_ERROR: TryFailure.TLS,
    pycurl.E_SSL_INVALIDCERTSTATUS: TryFailure.TLS,
    pycurl.E_SSL_ISSUER_ERROR: TryFailure.TLS,
}


class TrustedCertificates:
    """A file with certifi's certificates and the operator's own. A file, because curl parses certificates that it gets
    in memory again for each connection."""

    def __init__(self, ca_file: Path | None) -> None:
        self.path = certifi.where()
        self._memory_file: int | None = None
        if ca_file is not None:
            certificates = Path(self.path).read_bytes() + b"\n" + ca_file.read_bytes()
            self._memory_file = os.memfd_create("trusted certificates")
            self.path = f"/proc/self/fd/{self._memory_file}"
            Path(self.path).write_bytes(certificates)

    def close(self) -> None:
        if self._memory_file is not None:
            os.close(self._memory_file)
            self._memory_file = None


class CurlHandle:
    """A curl handle with the response of its current request. It is used for one request after another."""

    __slots__ = (
        "_allow_private",
        "_may_send_again",
        "_on_socket_open",
        "_proxy",
        "_unsent",
        "body",
        "curl",
        "destination",
        "headers",
        "is_address_blocked",
        "new_destination",
        "timeout_ms",
        "tunnel",
        "url",
    )

    def __init__(
        self,
        *,
        allow_private: bool,
        trusted: TrustedCertificates,
        on_socket_open: Callable[[int], None],
        proxy: EgressProxy | None = None,
    ) -> None:
        self._allow_private = allow_private
        self._proxy = proxy
        self._on_socket_open = on_socket_open
        self.body = b""
        self.headers: deque[bytes] = deque(maxlen=16)
        """The last header lines only, since all of them can be megabytes."""
        self.is_address_blocked = False
        """Whether an address was refused because it is not public."""
        self.destination: Destination
        """Of the URL; set by `load`."""
        self.tunnel = TunnelSetup()
        """For requests through a proxy."""
        self.new_destination: Destination | None = None
        """The destination whose addresses this request adds to curl's DNS cache."""
        self.timeout_ms = 0
        self.url = ""
        self._unsent = BytesIO()
        self._may_send_again = False
        self.curl = pycurl.Curl()
        for option, value in self._options(trusted).items():
            self.curl.setopt(option, value)

    def load(
        self, destination: Destination, url: str, body: bytes, signature: str, trace: str | None = None
    ) -> None:
        self.destination = destination
        setopt = self.curl.setopt
        if self.url != url:
            setopt(pycurl.URL, url)
            self.url = url
        self._unsent = BytesIO(body)
        self._may_send_again = True
        setopt(pycurl.POSTFIELDSIZE_LARGE, len(body))
        setopt(pycurl.READFUNCTION, self._unsent.read)
        headers = (_CONTENT_TYPE, _SIGNATURE + signature, "Expect:")
        setopt(pycurl.HTTPHEADER, headers if trace is None else (*headers, _TRACE + trace))

    def _rewind_body(self, _offset: int, _origin: int) -> int:
        """Let curl send the body a second time, but not a third; this is curl's callback.

        It asks if a reused connection was closed before an answer began, which is what a receiver does that closes an
        idle connection at the moment of the next request. Of its own accord, curl would send up to six times.
        """
        if not self._may_send_again:
            return int(pycurl.SEEKFUNC_FAIL)
        self._may_send_again = False
        self._unsent.seek(0)
        return int(pycurl.SEEKFUNC_OK)

    def prepare(self, timeout_ms: int) -> None:
        """Set what is left: the time limit, and the addresses that curl connects to, or asks the proxy for."""
        destination = self.destination
        if self._proxy is not None:
            # For any host and port of the URL. It also replaces the address of the last request.
            self.curl.setopt(pycurl.CONNECT_TO, [f"::{self.tunnel.targets[0]}"])
            destination = self._proxy.destination
        if self.timeout_ms != timeout_ms:
            self.curl.setopt(pycurl.TIMEOUT_MS, timeout_ms)
            self.timeout_ms = timeout_ms
        if not destination.is_known_to_curl:
            self.curl.setopt(pycurl.RESOLVE, [destination.resolve_entry])
            self.new_destination = destination

    def is_reusable(self) -> bool:
        """Return False if curl has not read the addresses yet, which get stale, or if it still holds large headers."""
        return (
            self.new_destination is None
            and self.curl.getinfo(pycurl.HEADER_SIZE) <= _MAX_REUSABLE_HEADER_BYTES
        )

    def reset(self) -> None:
        """Forget the response of the last request."""
        self.body = b""
        self.headers.clear()
        self.is_address_blocked = False
        self.tunnel.is_waiting = False

    def status_code(self) -> int | None:
        """Return the status code of the final response, or None if its headers are not complete."""
        code = int(self.curl.getinfo(pycurl.RESPONSE_CODE))
        return code if code >= 200 and (self.body or self._has_all_headers()) else None

    def failure(self, error: int) -> TryFailure:
        """Return why there is no status code. `error` is curl's code.

        It is 0 if the receiver closed the connection within the headers.
        """
        if self._proxy is not None:
            failure = self.tunnel.failure(error, self.connect_code())
            if failure is not None:
                return failure
        if self.is_address_blocked and not self.curl.getinfo(pycurl.CONNECT_TIME_T):
            return TryFailure.BLOCKED_ADDRESS
        if self.curl.getinfo(pycurl.RESPONSE_CODE) == 101:  # switching protocols: no response will follow
            return TryFailure.BROKEN_ANSWER
        if error == pycurl.E_COULDNT_CONNECT and self.curl.getinfo(pycurl.OS_ERRNO) == ECONNREFUSED:
            return TryFailure.REFUSED
        return _FAILURES.get(error, TryFailure.BROKEN_ANSWER)

    def connect_code(self) -> int:
        """Return the proxy's answer to the CONNECT of this request, or 0 without one."""
        return int(self.curl.getinfo(pycurl.HTTP_CONNECTCODE))

    def _has_all_headers(self) -> bool:
        """Return whether the empty line that ends the headers was received. Trailers may follow it."""
        for line in reversed(self.headers):
            if line[:1] in b"\r\n" and line[-1:] == b"\n":
                return True
            if line.startswith(b"HTTP/"):
                return False
        return False

    def _take_body(self, chunk: bytes) -> int | None:
        self.body += chunk
        return None if len(self.body) < RESPONSE_BODY_LIMIT else 0  # 0 makes curl close the connection

    def _open_socket(self, _purpose: int, address: pycurl.CurlSockAddr) -> int:
        """Open the socket for exactly the address that is checked here, or refuse it; this is curl's callback."""
        if self._proxy is not None:
            self.tunnel.begin()
        if not self._may_connect(address.family, address.addr[0]):
            self.is_address_blocked = True
            return int(pycurl.SOCKET_BAD)
        try:
            opened = socket.socket(address.family, address.socktype, address.protocol).detach()
        except OSError:
            return int(pycurl.SOCKET_BAD)
        self._on_socket_open(opened)
        return opened

    def _may_connect(self, family: int, host: str) -> bool:
        if family not in (socket.AF_INET, socket.AF_INET6):
            return False
        if self._proxy is not None:
            return self._proxy.is_at(host)
        return self._allow_private or is_public_address(ip_address(host))

    def _take_header_beyond_proxy(self, line: bytes) -> None:
        if not self.tunnel.take_header(line):
            self.headers.append(line)

    def _options(self, trusted: TrustedCertificates) -> dict[int, object]:
        options = self._common_options(trusted)
        if self._proxy is not None:
            options |= self._proxy.options(trusted.path)
            options[pycurl.HEADERFUNCTION] = self._take_header_beyond_proxy
            options[pycurl.XFERINFOFUNCTION] = self.tunnel.count_read
            options[pycurl.NOPROGRESS] = 0
        return options

    def _common_options(self, trusted: TrustedCertificates) -> dict[int, object]:
        protocols = pycurl.PROTO_HTTPS | (pycurl.PROTO_HTTP if self._allow_private else 0)
        return {
            pycurl.POST: 1,
            pycurl.USERAGENT: USER_AGENT,
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
            pycurl.DNS_CACHE_TIMEOUT: _CURL_DNS_CACHE_S,
            pycurl.MAXAGE_CONN: _MAX_IDLE_CONNECTION_S,
            pycurl.MAXLIFETIME_CONN: _MAX_CONNECTION_S,
            pycurl.HEADERFUNCTION: self.headers.append,
            pycurl.WRITEFUNCTION: self._take_body,
            pycurl.OPENSOCKETFUNCTION: self._open_socket,
            pycurl.SEEKFUNCTION: self._rewind_body,
        }
