"""Webhooks through an egress proxy: it is asked for a checked address, never for a name. §6.1, §6.6"""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pycurl
import pytest
from prometheus_client import REGISTRY

from services.webhooks.http.client import WebhookClient, WebhookRequest
from services.webhooks.http.curl_handle import CurlHandle, TrustedCertificates
from services.webhooks.http.proxy import EgressProxy
from shared.domain.deliveries.try_results import RESPONSE_BODY_LIMIT, TryFailure
from shared.platform.settings import ProxySettings
from tests.webhooks.certificates import Authority
from tests.webhooks.connect_proxy import ESTABLISHED, ConnectProxy
from tests.webhooks.receivers import (
    Peer,
    Receiver,
    Script,
    ScriptedReceiver,
    collect,
    listen,
    open_client,
    send_one,
)
from tests.webhooks.test_addresses import PRIVATE_ADDRESSES

SHOP, OTHER = "shop.example", "other.example"
PUBLIC, ANOTHER, PUBLIC_6 = "93.184.216.34", "93.184.216.35", "2606:2800:220:1::34"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def says(what: bytes) -> Script:
    return lambda peer: peer.say(what)


def says_forever(first: bytes, again: bytes) -> Script:
    def script(peer: Peer) -> None:
        peer.say(first)
        while True:
            peer.say(again)

    return script


def says_and_hangs(what: bytes) -> Script:
    def script(peer: Peer) -> None:
        peer.say(what)
        peer.hang()

    return script


def host_of(request: bytes) -> str:
    return request.decode().partition("Host: ")[2].partition("\r")[0]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@dataclass
class Merchant:
    """A receiver with TLS that keeps connections open. It notes the requests of each connection, and the SNI."""

    context: ssl.SSLContext
    response: bytes = OK
    requests: list[tuple[int, bytes]] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context.sni_callback = lambda _socket, name, _context: self.names.append(name)

    @contextmanager
    def running(self) -> Iterator[ScriptedReceiver]:
        with ScriptedReceiver(self._serve, tls=self.context, reads_requests=False) as receiver:
            yield receiver

    def _serve(self, peer: Peer) -> None:
        while True:
            self.requests.append((peer.socket.fileno(), peer.read_request()))
            peer.say(self.response)


@pytest.fixture
def merchant(authority: Authority) -> Merchant:
    return Merchant(authority.receiver(SHOP, OTHER))


@pytest.fixture
def proxy(merchant: Merchant) -> Iterator[ConnectProxy]:
    """Three public addresses lead to the merchant."""
    with merchant.running() as receiver:
        routes = {f"{address}:443": receiver.port for address in (PUBLIC, ANOTHER, f"[{PUBLIC_6}]")}
        with ConnectProxy(routes) as made:
            yield made


@contextmanager
def client_of(
    authority: Authority, proxy: ProxySettings, *addresses: str, limit_s: float = 5.0
) -> Iterator[WebhookClient[object]]:
    """A client as in production. Every name has these addresses."""
    with open_client(
        allow_private=False,
        ca_file=authority.ca_file,
        proxy=proxy,
        limit_s=limit_s,
        resolve_host=lambda _host, _port: addresses or [PUBLIC],
    ) as client:
        yield client


class TestWhatTheProxyIsAsked:
    def test_proxy_gets_the_address_and_the_merchant_gets_the_name(
        self, authority: Authority, proxy: ConnectProxy, merchant: Merchant
    ) -> None:
        """TLS is end to end: the SNI and the certificate are those of the name."""
        with client_of(authority, proxy.settings()) as client:
            client.start("one", WebhookRequest(f"https://{SHOP}/hook?x=1", b'{"a":1}', "f" * 64), TRACE)
            ((_, answer),) = collect(client, 1)
        assert (answer.status_code, answer.body) == (200, b"ok")
        (asked,) = proxy.asked
        assert (asked.method, asked.target, asked.headers["host"]) == (
            "CONNECT",
            f"{PUBLIC}:443",
            f"{PUBLIC}:443",
        )
        assert merchant.names == [SHOP]
        request = merchant.requests[0][1].decode()
        assert request.startswith("POST /hook?x=1 HTTP/1.1\r\n")
        assert f"Host: {SHOP}\r\n" in request
        assert "Proxy" not in request

    def test_proxy_sees_no_name_signature_trace_or_body(
        self, authority: Authority, proxy: ConnectProxy
    ) -> None:
        """The name is in the TLS handshake of the tunnel only, as on every way to the merchant."""
        with client_of(authority, proxy.settings()) as client:
            client.start("one", WebhookRequest(f"https://{SHOP}/hook", b'{"secret":1}', "f" * 64), TRACE)
            collect(client, 1)
        (asked,) = proxy.asked
        assert asked.headers.keys() == {"host", "user-agent", "proxy-connection"}
        assert SHOP not in asked.text
        sent = b"".join(proxy.upstream)
        assert b"f" * 64 not in sent
        assert b"secret" not in sent

    def test_ipv6_address_is_asked_for_in_brackets(self, authority: Authority, proxy: ConnectProxy) -> None:
        with client_of(authority, proxy.settings(), PUBLIC_6) as client:
            assert send_one(client, f"https://{SHOP}/").status_code == 200
        assert proxy.targets == [f"[{PUBLIC_6}]:443"]

    def test_ipv4_is_preferred(self, authority: Authority, proxy: ConnectProxy) -> None:
        """Without a way out of its own, the system's resolver sorts IPv6 first, which many proxies do not have."""
        with client_of(authority, proxy.settings(), PUBLIC_6, f"::ffff:{PUBLIC}") as client:
            assert send_one(client, f"https://{SHOP}/").status_code == 200
        assert proxy.targets == [f"{PUBLIC}:443"]

    def test_url_with_an_address_is_asked_for_as_it_is(self, authority: Authority) -> None:
        with (
            ScriptedReceiver(lambda peer: peer.say(OK), tls=authority.receiver(PUBLIC)) as receiver,
            ConnectProxy({f"{PUBLIC}:8443": receiver.port}) as proxy,
            client_of(authority, proxy.settings()) as client,
        ):
            assert send_one(client, f"https://{PUBLIC}:8443/").status_code == 200
        assert proxy.targets == [f"{PUBLIC}:8443"]

    @pytest.mark.parametrize("host", [SHOP, "127.0.0.1"])
    def test_plain_http_goes_by_connect_too(self, receiver: Receiver, host: str) -> None:
        """For development only: production sends nothing without TLS."""
        with (
            ConnectProxy({"127.0.0.1:80": receiver.port}) as proxy,
            open_client(proxy=proxy.settings(), resolve_host=lambda _host, _port: ["127.0.0.1"]) as client,
        ):
            assert send_one(client, f"http://{host}/hook").status_code == 200
        assert [(asked.method, asked.target) for asked in proxy.asked] == [("CONNECT", "127.0.0.1:80")]
        (request,) = receiver.requests
        assert (request.path, request.headers["host"]) == ("/hook", host)
        assert "proxy-connection" not in request.headers

    def test_user_and_password_are_sent_to_the_proxy_only(
        self, authority: Authority, proxy: ConnectProxy, merchant: Merchant
    ) -> None:
        proxy.credentials = "mizan:p@ss:wörd"
        with client_of(authority, proxy.settings()) as client:
            assert send_one(client, f"https://{SHOP}/").status_code == 200
        assert b"authorization" not in merchant.requests[0][1].lower()

    def test_proxies_of_the_environment_are_ignored(
        self, authority: Authority, proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:1/")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.setenv(name, "*")
        with client_of(authority, proxy.settings()) as client:
            assert send_one(client, f"https://{SHOP}/").status_code == 200
        assert proxy.targets == [f"{PUBLIC}:443"]

    def test_sockets_are_opened_to_the_proxy_only(self) -> None:
        """Even if curl went around it."""
        handle = CurlHandle(
            allow_private=True,
            trusted=TrustedCertificates(None),
            on_socket_open=lambda _: None,
            proxy=EgressProxy(ProxySettings("127.0.0.9", 3128)),
        )
        for host in (PUBLIC, "127.0.0.1"):
            address = pycurl.CurlSockAddr(socket.AF_INET, socket.SOCK_STREAM, 0, (host, 443))
            assert handle._open_socket(pycurl.SOCKTYPE_IPCXN, address) == pycurl.SOCKET_BAD


class TestAddressCheck:
    @pytest.mark.parametrize("address", PRIVATE_ADDRESSES)
    def test_private_address_is_refused_before_the_proxy_is_asked(
        self, authority: Authority, proxy: ConnectProxy, address: str
    ) -> None:
        with client_of(authority, proxy.settings(), address) as client:
            assert send_one(client, f"https://{SHOP}/").failure == TryFailure.BLOCKED_ADDRESS
        assert proxy.connections == 0

    def test_of_a_private_and_a_public_address_only_the_public_one_is_asked_for(
        self, authority: Authority, proxy: ConnectProxy
    ) -> None:
        with client_of(authority, proxy.settings(), "127.0.0.1", PUBLIC, "10.0.0.1") as client:
            assert send_one(client, f"https://{SHOP}/").status_code == 200
        assert proxy.targets == [f"{PUBLIC}:443"]

    def test_dns_rebinding_is_impossible(
        self, authority: Authority, proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each try asks for the address of its own look-up. Nothing resolves the name again between check and use."""
        monkeypatch.setattr("services.webhooks.http.dns._ADDRESSES_VALID_S", 0.0)
        answers = [[PUBLIC], ["127.0.0.1"], [ANOTHER], ["169.254.169.254"]]
        lookups = iter(answers)
        with open_client(
            allow_private=False,
            ca_file=authority.ca_file,
            proxy=proxy.settings(),
            resolve_host=lambda _host, _port: next(lookups),
        ) as client:
            outcomes = [send_one(client, f"https://{SHOP}/") for _ in answers]
        assert [outcome.failure or outcome.status_code for outcome in outcomes] == [
            200,
            TryFailure.BLOCKED_ADDRESS,
            200,
            TryFailure.BLOCKED_ADDRESS,
        ]
        assert proxy.targets == [f"{PUBLIC}:443", f"{ANOTHER}:443"]

    @pytest.mark.parametrize("url", [f"http://{SHOP}/", "https://127.0.0.1/", "https://localhost/"])
    def test_urls_that_are_not_public_https_are_refused(
        self, authority: Authority, proxy: ConnectProxy, url: str
    ) -> None:
        with client_of(authority, proxy.settings()) as client:
            assert send_one(client, url).failure == TryFailure.BLOCKED_ADDRESS
        assert proxy.connections == 0

    @pytest.mark.parametrize("case", ["another name", "expired", "unknown authority"])
    def test_wrong_certificate_of_the_merchant_is_refused(
        self, authority: Authority, case: str, tmp_path: Path
    ) -> None:
        """It is the merchant's fault, not the proxy's."""
        contexts = {
            "another name": lambda: authority.receiver(OTHER),
            "expired": lambda: authority.receiver(SHOP, is_expired=True),
            "unknown authority": lambda: Authority(tmp_path).receiver(SHOP),
        }
        merchant = Merchant(contexts[case]())
        with (
            merchant.running() as receiver,
            ConnectProxy({f"{PUBLIC}:443": receiver.port}) as proxy,
            client_of(authority, proxy.settings()) as client,
        ):
            assert send_one(client, f"https://{SHOP}/").failure == TryFailure.TLS
        assert merchant.requests == []


class TestReuse:
    def test_tunnel_is_reused(self, authority: Authority, proxy: ConnectProxy, merchant: Merchant) -> None:
        with client_of(authority, proxy.settings()) as client:
            assert {send_one(client, f"https://{SHOP}/").status_code for _ in range(20)} == {200}
        assert proxy.connections == 1
        assert len(merchant.requests) == 20

    def test_tunnel_is_reused_while_the_dns_gives_the_addresses_in_another_order(
        self, authority: Authority, proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("services.webhooks.http.dns._ADDRESSES_VALID_S", 0.0)
        answers = iter([[PUBLIC, ANOTHER], [ANOTHER, PUBLIC], [PUBLIC, ANOTHER]])
        with open_client(
            allow_private=False,
            ca_file=authority.ca_file,
            proxy=proxy.settings(),
            resolve_host=lambda _host, _port: next(answers),
        ) as client:
            for _ in range(3):
                assert send_one(client, f"https://{SHOP}/").status_code == 200
        assert proxy.connections == 1

    def test_tunnel_is_never_shared_by_two_merchants(
        self, authority: Authority, proxy: ConnectProxy, merchant: Merchant
    ) -> None:
        """Two names with the same address and port, as at a hosting company."""
        with client_of(authority, proxy.settings()) as client:
            for _ in range(5):
                for host in (SHOP, OTHER):
                    assert send_one(client, f"https://{host}/").status_code == 200
        assert proxy.targets == [f"{PUBLIC}:443"] * 2
        assert merchant.names == [SHOP, OTHER]
        assert len(merchant.requests) == 10
        assert len({(connection, host_of(request)) for connection, request in merchant.requests}) == 2

    def test_plain_http_tunnel_is_never_shared_by_two_merchants(self, receiver: Receiver) -> None:
        with (
            ConnectProxy({"127.0.0.1:80": receiver.port}) as proxy,
            open_client(proxy=proxy.settings(), resolve_host=lambda _host, _port: ["127.0.0.1"]) as client,
        ):
            for host in (SHOP, OTHER, SHOP, OTHER):
                assert send_one(client, f"http://{host}/").status_code == 200
        assert proxy.connections == 2
        pairs = {(request.connection, request.headers["host"]) for request in receiver.requests}
        assert len(pairs) == 2

    def test_tunnel_that_breaks_at_its_second_request_is_replaced_by_one_to_the_same_address(
        self, authority: Authority
    ) -> None:
        """curl repeats the request by itself, on a new connection to the proxy."""

        def serve_once(peer: Peer) -> None:
            peer.say(OK)
            peer.read_request()

        with (
            ScriptedReceiver(serve_once, tls=authority.receiver(SHOP)) as receiver,
            ConnectProxy({f"{PUBLIC}:443": receiver.port}) as proxy,
            client_of(authority, proxy.settings()) as client,
        ):
            assert {send_one(client, f"https://{SHOP}/").status_code for _ in range(5)} == {200}
        assert proxy.targets == [f"{PUBLIC}:443"] * 5
        assert not any(SHOP in asked.text for asked in proxy.asked)

    def test_many_requests_at_once_each_get_their_result(
        self, authority: Authority, proxy: ConnectProxy, merchant: Merchant
    ) -> None:
        with client_of(authority, proxy.settings(), limit_s=20) as client:
            for number in range(60):
                host = (SHOP, OTHER)[number % 2]
                client.start(number, WebhookRequest(f"https://{host}/{number}", b"{}", "0" * 64))
            answers = collect(client, 60)
        assert sorted(int(str(tag)) for tag, _ in answers) == list(range(60))
        assert {answer.status_code for _, answer in answers} == {200}
        assert len(merchant.requests) == 60


class TestMerchantBeyondTheProxy:
    def test_responses_of_the_merchant_are_recorded_as_without_a_proxy(
        self, authority: Authority, proxy: ConnectProxy, merchant: Merchant
    ) -> None:
        merchant.response = b"HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\noops"
        with client_of(authority, proxy.settings()) as client:
            answer = send_one(client, f"https://{SHOP}/")
        assert (answer.status_code, answer.failure, answer.body) == (500, None, b"oops")

    def test_body_is_cut_off_at_the_same_limit(
        self, authority: Authority, proxy: ConnectProxy, merchant: Merchant
    ) -> None:
        merchant.response = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000
        with client_of(authority, proxy.settings()) as client:
            answer = send_one(client, f"https://{SHOP}/")
        assert (answer.status_code, answer.body) == (200, b"x" * RESPONSE_BODY_LIMIT)

    @pytest.mark.parametrize(
        ("script", "expected"),
        [
            pytest.param(Peer.hang, TryFailure.TIMEOUT, id="hangs"),
            pytest.param(says(b""), TryFailure.BROKEN_ANSWER, id="hangs up"),
            pytest.param(says(b"\0" * 100), TryFailure.BROKEN_ANSWER, id="garbage"),
        ],
    )
    def test_fault_of_the_merchant_is_not_the_proxys(
        self, authority: Authority, script: Script, expected: TryFailure
    ) -> None:
        with (
            ScriptedReceiver(script, tls=authority.receiver(SHOP)) as receiver,
            ConnectProxy({f"{PUBLIC}:443": receiver.port}) as proxy,
            client_of(authority, proxy.settings(), limit_s=2) as client,
        ):
            assert send_one(client, f"https://{SHOP}/").failure == expected


class TestProxyAddress:
    def test_proxy_is_looked_up_by_name(self, authority: Authority, proxy: ConnectProxy) -> None:
        """By our own look-ups. It may have a private address, other than a merchant."""
        addresses = {SHOP: [PUBLIC], "egress": ["127.0.0.1"]}
        with open_client(
            allow_private=False,
            ca_file=authority.ca_file,
            proxy=proxy.settings("egress"),
            resolve_host=lambda host, _port: addresses[host],
        ) as client:
            for _ in range(2):
                assert send_one(client, f"https://{SHOP}/").status_code == 200
        assert proxy.connections == 1

    def test_proxy_without_an_address_is_its_fault(self, authority: Authority) -> None:
        def resolve(host: str, _port: int) -> list[str]:
            if host == "egress":
                raise socket.gaierror(socket.EAI_NONAME, "not known")
            return [PUBLIC]

        with open_client(
            allow_private=False, proxy=ProxySettings("egress", 3128), resolve_host=resolve
        ) as client:
            assert send_one(client, f"https://{SHOP}/").failure == TryFailure.PROXY_UNREACHABLE

    def test_name_of_a_merchant_that_is_not_found_is_not_the_proxys_fault(self, proxy: ConnectProxy) -> None:
        def resolve(host: str, _port: int) -> list[str]:
            raise socket.gaierror(socket.EAI_NONAME, "not known")

        with open_client(allow_private=False, proxy=proxy.settings(), resolve_host=resolve) as client:
            assert send_one(client, f"https://{SHOP}/").failure == TryFailure.DNS
        assert proxy.connections == 0

    def test_tls_with_the_proxy_is_verified(self, authority: Authority, proxy: ConnectProxy) -> None:
        """A tunnel within TLS: the password is encrypted, too. A wrong certificate gets no password."""
        good = ConnectProxy(proxy.routes, authority.receiver("127.0.0.1"), "mizan:secret")
        bad = ConnectProxy(proxy.routes, authority.receiver("another.example"), "mizan:secret")
        with good, client_of(authority, good.settings()) as client:
            assert {send_one(client, f"https://{SHOP}/").status_code for _ in range(3)} == {200}
        assert good.connections == 1
        with bad, client_of(authority, bad.settings()) as client:
            assert send_one(client, f"https://{SHOP}/").failure == TryFailure.PROXY_UNREACHABLE
        assert bad.asked == []


NO_ANSWER: dict[str, Script] = {
    "hangs": Peer.hang,
    "hangs up": says(b""),
    "resets": Peer.reset,
    "half a status line": says(b"HTTP/1.1 20"),
    "half of the headers": says(b"HTTP/1.1 200 OK\r\nA: b\r\n"),
    "garbage": says(bytes(range(256)) * 10),
    "another protocol": says(b"ICY 200 OK\r\n\r\n"),
    "a header of 1 MB": says(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 1_000_000),
    "endless headers": says_forever(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n" * 1000),
    "an endless header": says_forever(b"HTTP/1.1 200 OK\r\nA: ", b"x" * 65536),
    "an endless folded header": says_forever(b"HTTP/1.1 200 OK\r\nA: b\r\n", b" " * 65536),
    "endless zeros": says_forever(b"", b"\0" * 65536),
    "headers that stop": says_and_hangs(b"HTTP/1.1 200 OK\r\nA: b\r\n"),
}
REFUSALS: dict[str, tuple[Script, TryFailure]] = {
    "407": (
        says(b"HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic realm=x\r\n\r\n"),
        TryFailure.PROXY_REFUSED,
    ),
    "403": (says(b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"), TryFailure.PROXY_REFUSED),
    "302": (says(b"HTTP/1.1 302 There\r\nLocation: http://127.0.0.1/\r\n\r\n"), TryFailure.PROXY_REFUSED),
    "101": (says(b"HTTP/1.1 101 Switching\r\n\r\n"), TryFailure.PROXY_REFUSED),
    "endless 100s": (says_forever(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), TryFailure.PROXY_REFUSED),
    "500": (says(b"HTTP/1.1 500 Oh\r\n\r\n"), TryFailure.PROXY_ERROR),
    "502": (says(b"HTTP/1.1 502 Oh\r\nContent-Length: 2\r\n\r\nno"), TryFailure.PROXY_ERROR),
    "503, 1 MB": (says(b"HTTP/1.1 503 Oh\r\n\r\n" + b"x" * 1_000_000), TryFailure.PROXY_ERROR),
    "407, then an endless chunked body": (
        says_forever(
            b"HTTP/1.1 407 Who?\r\nTransfer-Encoding: chunked\r\n\r\n", b"10\r\n" + b"x" * 16 + b"\r\n"
        ),
        TryFailure.PROXY_REFUSED,
    ),
    "407, then an endless body": (
        says_forever(b"HTTP/1.1 407 Who?\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 65536),
        TryFailure.PROXY_REFUSED,
    ),
}


class TestFaultsOfTheProxy:
    @pytest.mark.parametrize("what", NO_ANSWER)
    def test_no_complete_answer_is_bounded_and_the_proxys_fault(
        self, authority: Authority, proxy: ConnectProxy, what: str
    ) -> None:
        """An endless one must not keep the thread busy: all other requests would wait."""
        proxy.answer = NO_ANSWER[what]
        with client_of(authority, proxy.settings(), limit_s=2) as client:
            answer = send_one(client, f"https://{SHOP}/")
            assert (answer.status_code, answer.failure, answer.body) == (
                None,
                TryFailure.PROXY_UNREACHABLE,
                b"",
            )
            proxy.answer = None
            assert send_one(client, f"https://{SHOP}/").status_code == 200

    @pytest.mark.parametrize("what", REFUSALS)
    def test_refusal_is_bounded_and_the_proxys_fault(
        self, authority: Authority, proxy: ConnectProxy, what: str
    ) -> None:
        """Neither its status code nor its body is taken for the merchant's."""
        proxy.answer, expected = REFUSALS[what]
        with client_of(authority, proxy.settings(), limit_s=2) as client:
            answer = send_one(client, f"https://{SHOP}/")
            assert (answer.status_code, answer.failure, answer.body) == (None, expected, b"")
            proxy.answer = None
            assert send_one(client, f"https://{SHOP}/").status_code == 200

    def test_proxy_that_is_down_is_its_fault(self, authority: Authority) -> None:
        with listen() as closed:
            port = closed.getsockname()[1]
        with client_of(authority, ProxySettings("127.0.0.1", port)) as client:
            assert send_one(client, f"https://{SHOP}/").failure == TryFailure.PROXY_UNREACHABLE

    def test_wrong_password_is_refused_and_asked_once(
        self, authority: Authority, proxy: ConnectProxy
    ) -> None:
        proxy.credentials = "mizan:right"
        wrong = ProxySettings("127.0.0.1", proxy.port, False, "mizan", "wrong")
        with client_of(authority, wrong) as client:
            assert send_one(client, f"https://{SHOP}/").failure == TryFailure.PROXY_REFUSED
        assert len(proxy.asked) == 1

    def test_proxy_that_opens_a_tunnel_to_nothing_is_not_mistaken_for_the_merchant(
        self, authority: Authority, proxy: ConnectProxy
    ) -> None:
        """It answers for the merchant, without the merchant's certificate."""
        proxy.answer = says(ESTABLISHED + OK)
        with client_of(authority, proxy.settings()) as client:
            assert send_one(client, f"https://{SHOP}/").failure == TryFailure.TLS

    def test_next_address_is_asked_for_if_the_proxy_cannot_connect(
        self, authority: Authority, proxy: ConnectProxy
    ) -> None:
        """And asked for first from then on, so that its tunnel is reused."""
        with client_of(authority, proxy.settings(), "93.184.216.99", ANOTHER) as client:
            assert {send_one(client, f"https://{SHOP}/").status_code for _ in range(3)} == {200}
        assert proxy.targets == ["93.184.216.99:443", f"{ANOTHER}:443"]

    def test_number_of_addresses_asked_for_is_limited(
        self, authority: Authority, proxy: ConnectProxy
    ) -> None:
        unreachable = [f"93.184.216.{number}" for number in range(100, 116)]
        with client_of(authority, proxy.settings(), *unreachable) as client:
            assert send_one(client, f"https://{SHOP}/").failure == TryFailure.PROXY_ERROR
        assert proxy.targets == [f"{address}:443" for address in unreachable[:3]]

    def test_a_refused_address_is_not_replaced_by_another(
        self, authority: Authority, proxy: ConnectProxy
    ) -> None:
        """403 and 407 are about us, not about the address."""
        proxy.answer = REFUSALS["403"][0]
        with client_of(authority, proxy.settings(), PUBLIC, ANOTHER) as client:
            assert send_one(client, f"https://{SHOP}/").failure == TryFailure.PROXY_REFUSED
        assert len(proxy.asked) == 1

    def test_failures_are_counted_by_the_answer_and_logged_without_the_password(
        self, authority: Authority, proxy: ConnectProxy, caplog: pytest.LogCaptureFixture
    ) -> None:
        """At most once a minute: a proxy that is down would fill the log."""
        before = {reason: failures_counted(reason) for reason in ("407", "unreachable")}
        proxy.credentials = "mizan:right"
        wrong = ProxySettings("127.0.0.1", proxy.port, False, "mizan", "very-secret")
        with client_of(authority, wrong) as client:
            for _ in range(3):
                send_one(client, f"https://{SHOP}/")
            proxy.answer = Peer.reset
            send_one(client, f"https://{SHOP}/")
        assert failures_counted("407") - before["407"] == 3
        assert failures_counted("unreachable") - before["unreachable"] == 1
        (line,) = [record.getMessage() for record in caplog.records if "egress proxy" in record.getMessage()]
        assert "407" in line
        assert "very-secret" not in caplog.text


def failures_counted(reason: str) -> float:
    return REGISTRY.get_sample_value("mizan_webhook_proxy_failures_total", {"reason": reason}) or 0.0
