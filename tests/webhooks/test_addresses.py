"""No webhook reaches a private address: not by its URL, DNS, DNS rebinding or redirects. §6.1"""

import socket
from collections.abc import Iterator
from ipaddress import ip_address

import pycurl
import pytest

from services.webhooks.http.curl_handle import CurlHandle, TrustedCertificates
from shared.domain.deliveries.try_results import TryFailure
from tests.webhooks.certificates import Authority
from tests.webhooks.receivers import (
    Peer,
    ScriptedReceiver,
    listen,
    open_client,
    send_one,
)

# PORT is a port on loopback that must get no connection.
_HOSTILE = """
    https://127.0.0.1:PORT/
    https://127.0.0.1:PORT
    https://127.0.0.2:PORT/
    https://127.255.255.254:PORT/
    https://127.1:PORT/
    https://127.0.1:PORT/
    https://2130706433:PORT/
    https://4294967296:PORT/
    https://017700000001:PORT/
    https://0177.0.0.1:PORT/
    https://0177.0.0.01:PORT/
    https://00000177.0.0.1:PORT/
    https://0x7f000001:PORT/
    https://0x7f.0.0.1:PORT/
    https://0x7f.1:PORT/
    https://0X7F.0x0.0x0.0x1:PORT/
    https://127.0.0.0x1:PORT/
    https://127.0.0.1.:PORT/
    https://127.0.0.1..:PORT/
    https://127.0.0.256:PORT/
    https://127.0.0.1.0x7f:PORT/
    https://0:PORT/
    https://0.0.0.0:PORT/
    https://0.1.2.3:PORT/
    https://10.0.0.1:PORT/
    https://100.64.0.1:PORT/
    https://100.100.100.200:PORT/
    https://168.63.129.16:PORT/
    https://169.254.169.254:PORT/latest/meta-data/
    https://169.254.170.2:PORT/
    https://172.16.0.1:PORT/
    https://172.31.255.255:PORT/
    https://192.0.0.192:PORT/
    https://192.0.2.1:PORT/
    https://192.88.99.1:PORT/
    https://192.168.1.1:PORT/
    https://198.18.0.1:PORT/
    https://198.51.100.1:PORT/
    https://203.0.113.1:PORT/
    https://224.0.0.1:PORT/
    https://240.0.0.1:PORT/
    https://255.255.255.255:PORT/
    https://[::1]:PORT/
    https://[::]:PORT/
    https://[0:0:0:0:0:0:0:1]:PORT/
    https://[0000::0001]:PORT/
    https://[::127.0.0.1]:PORT/
    https://[::ffff:127.0.0.1]:PORT/
    https://[::ffff:7f00:1]:PORT/
    https://[::ffff:0:127.0.0.1]:PORT/
    https://[::ffff:169.254.169.254]:PORT/
    https://[64:ff9b::127.0.0.1]:PORT/
    https://[64:ff9b::7f00:1]:PORT/
    https://[64:ff9b:1::7f00:1]:PORT/
    https://[2002:7f00:1::]:PORT/
    https://[2002:a9fe:a9fe::1]:PORT/
    https://[2001::1]:PORT/
    https://[2001:db8::1]:PORT/
    https://[3fff::1]:PORT/
    https://[100::1]:PORT/
    https://[fc00::1]:PORT/
    https://[fd00:ec2::254]:PORT/
    https://[fe80::1]:PORT/
    https://[fe80::1%25lo]:PORT/
    https://[fe80::1%lo]:PORT/
    https://[::1%25lo]:PORT/
    https://[fec0::1]:PORT/
    https://[ff02::1]:PORT/
    https://[::1:PORT/
    https://::1:PORT/
    https://[v1.127.0.0.1]:PORT/
    https://[127.0.0.1]:PORT/
    https://localhost:PORT/
    https://LOCALHOST:PORT/
    https://localhost.:PORT/
    https://a.localhost:PORT/
    https://localhost.localdomain:PORT/
    https://router.local:PORT/
    https://metadata.google.internal:PORT/
    https://metadata:PORT/
    https://db.home.arpa:PORT/
    https://user@shop.example:PORT/
    https://user:password@shop.example:PORT/
    https://shop.example@127.0.0.1:PORT/
    https://shop.example:443@127.0.0.1:PORT/
    https://@127.0.0.1:PORT/
    https://shop.example%40127.0.0.1:PORT/
    https://shop.example\\@127.0.0.1:PORT/
    https://127.0.0.1:PORT\\@shop.example/
    https:\\\\127.0.0.1:PORT/
    https://shop.example#@127.0.0.1:PORT/
    https://127.0.0.1:PORT#@shop.example/
    https://127.0.0.1:PORT?@shop.example/
    https://127.0.0.1%00.shop.example:PORT/
    https://127.0.0.1%2eshop.example:PORT/
    https://%31%32%37.0.0.1:PORT/
    https://127%2e0%2e0%2e1:PORT/
    https://①②⑦.⓪.⓪.①:PORT/
    https://127。0。0。1:PORT/
    https://\uff11\uff12\uff17.0.0.1:PORT/
    https://ⓛocalhost:PORT/
    https://loc\u00adalhost:PORT/
    https://shop.example:0/
    https://shop.example:65536/
    https://shop.example:99999999999/
    https://shop.example:-1/
    https://shop.example:0x50/
    https://shop.example:443:PORT/
    https://shop.example: PORT/
    https:///127.0.0.1:PORT/
    https:/127.0.0.1:PORT/
    https:127.0.0.1:PORT/
    https://
    https://:PORT/
    https://..:PORT/
    //127.0.0.1:PORT/
    127.0.0.1:PORT
    http://127.0.0.1:PORT/
    http://shop.example:PORT/
    HTTP://127.0.0.1:PORT/
    file:///etc/passwd
    file://127.0.0.1/etc/passwd
    gopher://127.0.0.1:PORT/_POST%20/
    dict://127.0.0.1:PORT/info
    ftp://127.0.0.1:PORT/
    ftps://127.0.0.1:PORT/
    ldap://127.0.0.1:PORT/
    telnet://127.0.0.1:PORT/
    tftp://127.0.0.1:PORT/
    smtp://127.0.0.1:PORT/
    scp://127.0.0.1:PORT/
    ws://127.0.0.1:PORT/
    wss://127.0.0.1:PORT/
    javascript:alert(1)
    unix:///var/run/docker.sock
    https+unix://%2Fvar%2Frun%2Fdocker.sock/
"""
HOSTILE = [line.strip() for line in _HOSTILE.splitlines() if line.strip()]
CONTROL = [
    "",
    " ",
    "https://127.0.0.1:PORT/\r\nX: y",
    "https://shop.example\t@127.0.0.1/",
    "https://a\x00b.example/",
]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def forbidden_listener() -> Iterator[socket.socket]:
    """Listens on loopback, on IPv4 and IPv6 if available. Fails the test if anything connects."""
    has_ipv6 = socket.has_dualstack_ipv6()
    listening = socket.create_server(
        ("" if has_ipv6 else "127.0.0.1", 0),
        family=socket.AF_INET6 if has_ipv6 else socket.AF_INET,
        dualstack_ipv6=has_ipv6,
    )
    listening.setblocking(False)
    with listening:
        yield listening
        with pytest.raises(BlockingIOError):
            listening.accept()


def port_of(listening: socket.socket) -> int:
    return int(listening.getsockname()[1])


def never(host: str, _port: int) -> list[str]:
    raise AssertionError(f"{host} was looked up")


@pytest.mark.parametrize("url", HOSTILE + CONTROL)
def test_hostile_url_is_blocked_without_a_lookup(url: str, forbidden_listener: socket.socket) -> None:
    with open_client(allow_private=False, resolve_host=never) as client:
        answer = send_one(client, url.replace("PORT", str(port_of(forbidden_listener))))
    assert (answer.status_code, answer.failure) == (None, TryFailure.BLOCKED_ADDRESS)
    assert (answer.duration_ms, answer.body) == (0, b"")


PRIVATE_ADDRESSES = [
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",  # noqa: S104  not bound to
    "10.1.2.3",
    "100.64.0.1",
    "169.254.169.254",
    "172.20.0.1",
    "192.168.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "fd00:ec2::254",
    "fe80::1",
    "ff02::1",
]


@pytest.mark.parametrize("address", PRIVATE_ADDRESSES)
def test_host_name_with_a_private_address_gets_no_connection(
    address: str, forbidden_listener: socket.socket
) -> None:
    """Like 127.0.0.1.nip.io: the URL alone does not show it."""
    with open_client(allow_private=False, resolve_host=lambda _host, _port: [address]) as client:
        answer = send_one(client, f"https://shop.example:{port_of(forbidden_listener)}/")
    assert answer.failure == TryFailure.BLOCKED_ADDRESS


def test_host_name_with_several_private_addresses_is_blocked(forbidden_listener: socket.socket) -> None:
    with open_client(
        allow_private=False, limit_s=5, resolve_host=lambda _host, _port: PRIVATE_ADDRESSES
    ) as client:
        answer = send_one(client, f"https://shop.example:{port_of(forbidden_listener)}/")
    assert answer.failure == TryFailure.BLOCKED_ADDRESS


@pytest.mark.parametrize("spelling", ["https://{}:{}/", "http://{}:{}/"])
@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:127.0.0.1]", "localhost", "2130706433"])
def test_socket_is_checked_even_if_the_url_check_fails(
    monkeypatch: pytest.MonkeyPatch, forbidden_listener: socket.socket, spelling: str, host: str
) -> None:
    """Plain http is never used."""
    monkeypatch.setattr("services.webhooks.http.dns.check_webhook_url", lambda url, **_: url)
    with open_client(allow_private=False, limit_s=2) as client:
        answer = send_one(client, spelling.format(host, port_of(forbidden_listener)))
    assert answer.failure == (
        TryFailure.BLOCKED_ADDRESS if spelling.startswith("https") else TryFailure.BROKEN_ANSWER
    )


@pytest.mark.parametrize("allow_private", [True, False])
def test_unix_sockets_are_never_connected_to(allow_private: bool) -> None:
    trusted = TrustedCertificates(None)
    handle = CurlHandle(allow_private=allow_private, trusted=trusted, on_socket_open=lambda _: None)
    address = pycurl.CurlSockAddr(socket.AF_UNIX, socket.SOCK_STREAM, 0, b"/var/run/docker.sock")
    assert handle._open_socket(pycurl.SOCKTYPE_IPCXN, address) == pycurl.SOCKET_BAD
    assert handle.is_address_blocked


class TestWithAPublicReceiver:
    """127.0.0.2 counts as a public address here, by a patched `is_public_address`. 127.0.0.1 stays private."""

    @pytest.fixture(autouse=True)
    def _public_address(self, monkeypatch: pytest.MonkeyPatch) -> None:
        public_address = ip_address("127.0.0.2")
        monkeypatch.setattr(
            "services.webhooks.http.curl_handle.is_public_address", lambda ip: ip == public_address
        )
        monkeypatch.setattr("services.webhooks.http.dns._ADDRESSES_VALID_S", 0.0)

    @pytest.fixture
    def public(self, authority: Authority) -> Iterator[ScriptedReceiver]:
        def script(peer: Peer) -> None:
            peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        with ScriptedReceiver(
            script, tls=authority.receiver("shop.example"), address="127.0.0.2"
        ) as receiver:
            yield receiver

    @pytest.fixture
    def private(self, public: ScriptedReceiver) -> Iterator[socket.socket]:
        """Listens at the same port, and must get no connection."""
        with listen("127.0.0.1", public.port) as listening:
            listening.setblocking(False)
            yield listening
            with pytest.raises(BlockingIOError):
                listening.accept()

    def test_dns_rebinding_is_blocked(
        self, authority: Authority, public: ScriptedReceiver, private: socket.socket
    ) -> None:
        """The name has a public address at the first look-up, and a private one later."""
        addresses_in_turn = iter([["127.0.0.2"], ["127.0.0.1"], ["127.0.0.2"]])
        with open_client(
            allow_private=False,
            ca_file=authority.ca_file,
            resolve_host=lambda _host, _port: next(addresses_in_turn),
        ) as client:
            url = f"https://shop.example:{public.port}/"
            answers = [send_one(client, url) for _ in range(3)]
        assert [answer.failure or answer.status_code for answer in answers] == [
            200,
            TryFailure.BLOCKED_ADDRESS,
            200,
        ]

    @pytest.mark.parametrize(
        "addresses", [["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "127.0.0.1"], ["::1", "127.0.0.2"]]
    )
    def test_of_a_public_and_a_private_address_the_public_one_is_used(
        self, authority: Authority, public: ScriptedReceiver, private: socket.socket, addresses: list[str]
    ) -> None:
        with open_client(
            allow_private=False, ca_file=authority.ca_file, resolve_host=lambda _host, _port: addresses
        ) as client:
            assert send_one(client, f"https://shop.example:{public.port}/").status_code == 200

    def test_private_address_is_blocked_after_the_public_one_refused(self, authority: Authority) -> None:
        with listen("127.0.0.1") as listening:
            listening.setblocking(False)
            with open_client(
                allow_private=False,
                ca_file=authority.ca_file,
                resolve_host=lambda _host, _port: ["127.0.0.2", "127.0.0.1"],
            ) as client:
                answer = send_one(client, f"https://shop.example:{port_of(listening)}/")
            with pytest.raises(BlockingIOError):
                listening.accept()
        assert answer.failure == TryFailure.BLOCKED_ADDRESS

    def test_failure_after_connecting_to_the_public_address_is_reported(self, authority: Authority) -> None:
        with (
            ScriptedReceiver(
                lambda peer: peer.say(b"not TLS"), address="127.0.0.2", reads_requests=False
            ) as receiver,
            open_client(
                allow_private=False,
                ca_file=authority.ca_file,
                resolve_host=lambda _host, _port: ["127.0.0.1", "127.0.0.2"],
            ) as client,
        ):
            assert send_one(client, f"https://shop.example:{receiver.port}/").failure == TryFailure.TLS

    def test_blocked_address_does_not_affect_the_next_request(
        self, authority: Authority, public: ScriptedReceiver, private: socket.socket
    ) -> None:
        """It uses the same handle, and fails for another reason."""

        def resolve_in_turn(host: str, _port: int) -> list[str]:
            return ["127.0.0.1"] if host.startswith("private") else ["127.0.0.2"]

        with listen("127.0.0.2") as closed:
            unused = port_of(closed)
        with open_client(
            allow_private=False, ca_file=authority.ca_file, resolve_host=resolve_in_turn
        ) as client:
            outcomes = [
                send_one(client, url).failure
                for url in (
                    f"https://private.example:{public.port}/",
                    f"https://shop.example:{unused}/",
                    f"https://other.example:{public.port}/",
                    f"https://shop.example:{public.port}/",
                )
            ]
        assert outcomes == [TryFailure.BLOCKED_ADDRESS, TryFailure.REFUSED, TryFailure.TLS, None]

    def test_a_redirect_to_a_private_address_is_not_followed(
        self, authority: Authority, private: socket.socket
    ) -> None:
        answer = f"HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:{port_of(private)}/\r\nContent-Length: 0\r\n\r\n"
        with (
            ScriptedReceiver(
                lambda peer: peer.say(answer.encode()),
                tls=authority.receiver("shop.example"),
                address="127.0.0.2",
            ) as receiver,
            open_client(
                allow_private=False,
                ca_file=authority.ca_file,
                resolve_host=lambda _host, _port: ["127.0.0.2"],
            ) as client,
        ):
            assert send_one(client, f"https://shop.example:{receiver.port}/").status_code == 302
