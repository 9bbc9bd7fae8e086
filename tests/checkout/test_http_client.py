"""Requests to a provider: the client must know whether a request may have arrived, to avoid double charges."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic

import pytest

from services.checkout.providers import http_client
from services.checkout.providers.http_client import HttpReply, NoResponseError, NotSentError, ProviderClient
from stack.ports import find_free_ports
from tests.webhooks.certificates import Authority

Behaviour = Callable[[socket.socket], None]


@contextmanager
def listening(behave: Behaviour, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Run a server for one connection, with this behaviour."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            line, _ = server.accept()
            try:
                if context is not None:
                    line = context.wrap_socket(line, server_side=True)
                behave(line)
            except OSError:
                pass  # the client has closed the connection
            finally:
                line.close()

        thread = Thread(target=serve, daemon=True)
        thread.start()
        scheme = "http" if context is None else "https"
        yield f"{scheme}://localhost:{server.getsockname()[1]}"
        thread.join(10)


def says(answer: bytes) -> Behaviour:
    def behave(line: socket.socket) -> None:
        line.recv(65536)
        line.sendall(answer)

    return behave


def with_body(body: bytes, status: str = "200 OK") -> Behaviour:
    return says(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body))


def call(url: str, timeout_s: float = 5.0) -> HttpReply:
    return ProviderClient(url, timeout_s).post_json("/charges", {"card": "4242424242424242"})


def test_json_response_is_returned() -> None:
    with listening(with_body(b'{"status": "paid"}')) as url:
        assert call(url) == HttpReply(200, {"status": "paid"})


def test_byte_order_mark_before_a_json_response_is_ignored() -> None:
    with listening(with_body(b'\xef\xbb\xbf{"status": "paid"}')) as url:
        assert call(url) == HttpReply(200, {"status": "paid"})


def test_redirect_is_returned_and_not_followed() -> None:
    with listening(with_body(b"{}", "302 Found\r\nLocation: http://127.0.0.1:1/")) as url:
        assert call(url).status == 302


class TestNotSent:
    def test_refused_connection_is_not_sent(self) -> None:
        with pytest.raises(NotSentError):
            call(f"http://127.0.0.1:{find_free_ports(1)[0]}")

    def test_unknown_host_is_not_sent(self) -> None:
        with pytest.raises(NotSentError):
            call("http://nobody.invalid")

    def test_connect_timeout_is_not_sent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(http_client, "_CONNECT_S", 0.3)
        with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
            address = server.getsockname()
            # These fill the backlog, and nothing accepts connections.
            knocking = [socket.socket() for _ in range(4)]
            for one in knocking:
                one.setblocking(False)
                one.connect_ex(address)
            with pytest.raises(NotSentError):
                call(f"http://127.0.0.1:{address[1]}")
            for one in knocking:
                one.close()

    def test_invalid_certificate_is_not_sent(self, tmp_path: Path) -> None:
        context = Authority(tmp_path).self_signed_receiver()
        with listening(with_body(b"{}"), context) as url, pytest.raises(NotSentError):
            call(url)

    def test_deadline_that_passes_during_the_dns_lookup_is_not_sent(self) -> None:
        """By then other processes consider the request lost, and the customer may have paid in another way."""
        read: list[bytes] = []
        with listening(lambda line: read.append(line.recv(65536))) as url:
            client = ProviderClient(url, 5.0)
            with pytest.raises(NotSentError):
                client.post_json("/charges", {}, lambda: True)
        assert read in ([], [b""])


class TestOutcomeUnknown:
    @pytest.mark.parametrize(
        "behave",
        [
            says(b""),  # it reads the request and closes the connection
            says(b"HTTP/1.1 200 OK\r\nContent-Le"),
            says(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"),
            says(b"220 mail.example ESMTP\r\n"),
            with_body(b"<html>sorry</html>"),
            with_body(b'["paid"]'),
            with_body(b""),
            with_body(b"\xff\xfe{"),
            with_body(b"[" * 60_000),
            with_body(b'{"x": "' + b"a" * 70_000 + b'"}'),
            with_body(b"", "502 Bad Gateway"),
            with_body(b'{"x": ' + b"[" * 20_000 + b"]" * 20_000 + b"}"),
            with_body(b'{"status": "declined", "status": "paid"}'),
            with_body(b'{"x": NaN}'),
            with_body(b'{"x": ' + b"9" * 5_000 + b"}"),
        ],
        ids=range(15),
    )
    def test_malformed_response_is_no_response(self, behave: Behaviour) -> None:
        with listening(behave) as url, pytest.raises(NoResponseError):
            call(url)

    def test_silent_server_is_no_response(self) -> None:
        def behave(line: socket.socket) -> None:
            line.recv(65536)
            line.recv(1)  # until the client closes the connection

        began = monotonic()
        with listening(behave) as url, pytest.raises(NoResponseError):
            call(url, timeout_s=0.3)
        assert monotonic() - began < 5

    @pytest.mark.parametrize(
        ("head", "drop"),
        [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"x" * 4096),
            (b"HTTP/1.1 200 OK\r\n", b"X-More: yes\r\n"),
            (b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 1000000\r\n\r\n", b"x" * 100),
            (b"", b"H"),
        ],
        ids=["body", "headers", "redirect", "status line"],
    )
    def test_slow_response_is_no_response_after_the_timeout(self, head: bytes, drop: bytes) -> None:
        """The timeout covers the whole response, even if bytes keep arriving."""

        def behave(line: socket.socket) -> None:
            line.recv(65536)
            line.sendall(head)
            line.settimeout(0.1)
            while True:
                line.sendall(drop)
                try:
                    if not line.recv(1):
                        return
                except TimeoutError:
                    continue

        began = monotonic()
        with listening(behave) as url, pytest.raises(NoResponseError):
            call(url, timeout_s=0.25)
        assert monotonic() - began < 5

    @pytest.mark.parametrize("location", [b"http://[", b"\xff\xfe", b"//", b"http://127.0.0.1:1/\x00"])
    def test_redirect_to_an_invalid_url_is_returned(self, location: bytes) -> None:
        answer = b"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 2\r\n\r\n{}" % location
        with listening(says(answer)) as url:
            assert call(url).status == 302

    def test_tls_failure_after_the_request_is_no_response(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is not NotSentError, although requests raises SSLError for both."""
        authority = Authority(tmp_path)
        monkeypatch.setattr("requests.adapters.DEFAULT_CA_BUNDLE_PATH", str(authority.ca_file))

        def behave(line: socket.socket) -> None:
            line.recv(65536)
            with socket.socket(fileno=line.detach()) as bare:
                bare.sendall(b"this is no TLS")

        with listening(behave, authority.receiver("localhost")) as url, pytest.raises(NoResponseError):
            call(url)

    def test_server_without_tls_is_no_response(self) -> None:
        """It may have processed the bytes that it received."""
        with listening(says(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as url, pytest.raises(NoResponseError):
            call(url.replace("http:", "https:"))


def test_errors_never_contain_the_request() -> None:
    with listening(says(b"")) as url, pytest.raises(NoResponseError) as caught:
        call(url)
    assert "4242" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_proxies_and_credentials_of_the_environment_are_ignored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine localhost login me password hush\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    seen = []

    def behave(line: socket.socket) -> None:
        seen.append(line.recv(65536))
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with listening(behave) as url:
        call(url)
    assert b"Authorization" not in seen[0]
