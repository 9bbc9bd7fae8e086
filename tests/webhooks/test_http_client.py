"""The HTTP client: many requests from one thread, their results and their cost. §6.3, §6.6"""

import os
import resource
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Barrier, Event, Thread, Timer
from time import monotonic, thread_time, time
from typing import Any

import psutil
import pytest

from services.webhooks.http.client import WebhookClient, WebhookRequest
from shared.domain.deliveries.try_results import TryFailure
from tests.waiting import eventually
from tests.webhooks.receivers import (
    Peer,
    Received,
    Receiver,
    Reply,
    ScriptedReceiver,
    collect,
    listen,
    open_client,
    send_one,
)

SIGNATURE = "5d41402abc4b2a76b9719d911017c592" * 2


def resolve_nothing(host: str, _port: int) -> list[str]:
    raise socket.gaierror(socket.EAI_NONAME, f"{host} is not known")


@pytest.fixture
def client() -> Iterator[WebhookClient[object]]:
    with open_client(resolve_host=resolve_nothing) as made:
        yield made


def make_request(url: str, body: bytes = b"{}") -> WebhookRequest:
    return WebhookRequest(url, body, SIGNATURE)


class TestRequest:
    def test_the_receiver_gets_exactly_these_bytes_and_headers(
        self, receiver: Receiver, client: WebhookClient[object]
    ) -> None:
        """§6.3: Content-Type and Service-Signature; no Accept-Encoding, no Expect."""
        body = '{"id":"عربي","n":1.0}\r\n\x00'.encode()
        send_one(client, receiver.url, body, SIGNATURE)
        (request,) = receiver.requests
        assert request.body == body
        assert request.path == "/hooks"
        assert request.headers == {
            "host": f"127.0.0.1:{receiver.port}",
            "user-agent": "Mizan",
            "accept": "*/*",
            "content-type": "application/json",
            "service-signature": SIGNATURE,
            "content-length": str(len(body)),
        }

    @pytest.mark.parametrize("size", [0, 1, 100_000, 3_000_000])
    def test_body_of_any_size_is_sent_completely_and_at_once(
        self, receiver: Receiver, client: WebhookClient[object], size: int
    ) -> None:
        """For a large one, curl would send Expect: 100-continue first."""
        assert send_one(client, receiver.url, b"x" * size).status_code == 200
        (request,) = receiver.requests
        assert request.body == b"x" * size
        assert "expect" not in request.headers

    def test_query_of_the_url_is_sent(self, receiver: Receiver, client: WebhookClient[object]) -> None:
        send_one(client, receiver.url + "/a%20b?token=x&y=%2F")
        assert receiver.requests[0].path == "/hooks/a%20b?token=x&y=%2F"

    def test_proxies_and_credentials_of_the_environment_are_ignored(
        self, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:1/")
        monkeypatch.setenv("no_proxy", "")
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / ".netrc").write_text("default login somebody password secret\n")
        with open_client() as client:
            assert send_one(client, receiver.url).status_code == 200
        assert "authorization" not in receiver.requests[0].headers


class TestResult:
    @pytest.mark.parametrize(
        ("status", "is_success"),
        [
            (200, True),
            (204, True),
            (299, True),
            (300, False),
            (302, False),
            (400, False),
            (410, False),
            (500, False),
        ],
    )
    def test_only_2xx_is_a_success(
        self, receiver: Receiver, client: WebhookClient[object], status: int, is_success: bool
    ) -> None:
        receiver.answer = Reply(status)
        answer = send_one(client, receiver.url)
        assert (answer.status_code, answer.failure, answer.is_success) == (status, None, is_success)

    def test_result_has_the_start_time_and_the_duration(
        self, receiver: Receiver, client: WebhookClient[object]
    ) -> None:
        receiver.answer = Reply(200, b"thanks", delay_s=0.2)
        before = time()
        answer = send_one(client, receiver.url)
        duration_s = answer.duration_ms / 1000
        assert before - 0.01 <= answer.began_at <= answer.began_at + duration_s <= time() + 0.01
        assert duration_s >= 0.2
        assert answer.body == b"thanks"

    def test_refused_connection_is_a_failure(self, client: WebhookClient[object]) -> None:
        with listen() as listening:
            port = listening.getsockname()[1]
        answer = send_one(client, f"http://127.0.0.1:{port}/")
        assert (answer.status_code, answer.failure, answer.is_success) == (None, TryFailure.REFUSED, False)

    def test_lack_of_sockets_is_not_reported_as_a_refusal(
        self, receiver: Receiver, client: WebhookClient[object]
    ) -> None:
        """The next request succeeds once there are sockets again."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        spare = os.dup(0)
        os.close(spare)
        client.start("poor", make_request(receiver.url))
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare, hard))
        try:
            ((_, poor),) = collect(client, 1)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert poor.failure == TryFailure.UNREACHABLE
        assert send_one(client, receiver.url).status_code == 200

    def test_hanging_receiver_times_out(self, receiver: Receiver) -> None:
        receiver.answer = Reply(hangs=True)
        with open_client(limit_s=0.3) as client:
            answer = send_one(client, receiver.url)
        assert answer.failure == TryFailure.TIMEOUT
        assert 290 <= answer.duration_ms < 10_000


class TestConnections:
    def test_connection_is_reused(self, receiver: Receiver, client: WebhookClient[object]) -> None:
        assert {send_one(client, receiver.url).status_code for _ in range(50)} == {200}
        assert receiver.connections == 1

    def test_a_busy_connection_is_not_shared(self, receiver: Receiver, client: WebhookClient[object]) -> None:
        receiver.answer = Reply(delay_s=0.1)
        for _ in range(2):
            for tag in range(20):
                client.start(tag, make_request(receiver.url))
            collect(client, 20)
        assert receiver.connections == 20

    def test_receiver_that_closes_connections_without_notice_misses_nothing(
        self, receiver: Receiver, client: WebhookClient[object]
    ) -> None:
        receiver.answer = Reply(closes=True)
        assert {send_one(client, receiver.url).status_code for _ in range(100)} == {200}

    @pytest.mark.parametrize("how", [socket.socket.close, Peer.reset], ids=["closes", "resets"])
    def test_a_connection_that_breaks_at_its_second_request_is_replaced(
        self, client: WebhookClient[object], how: Any
    ) -> None:
        """As if the receiver closes an idle connection at the moment of the next request."""

        def script(peer: Peer) -> None:
            peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            peer.read_request()
            how(peer if how is Peer.reset else peer.socket)

        with ScriptedReceiver(script) as scripted:
            assert {send_one(client, scripted.url).status_code for _ in range(20)} == {200}
            assert scripted.connections == 20

    def test_a_request_is_sent_twice_at_most(self, client: WebhookClient[object]) -> None:
        """Also if there are many reused connections, and the receiver closes each without an answer."""
        many = Barrier(10)
        unanswered = []

        def script(peer: Peer) -> None:
            many.wait(30)  # so that there are ten connections
            peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            if peer.read_request():
                unanswered.append(peer)

        with ScriptedReceiver(script) as scripted:
            for tag in range(10):
                client.start(tag, make_request(scripted.url))
            assert {result.status_code for _, result in collect(client, 10)} == {200}
            assert send_one(client, scripted.url).failure == TryFailure.BROKEN_ANSWER
            assert len(unanswered) == 2

    def test_idle_connections_closed_by_the_receiver_use_no_cpu(self, client: WebhookClient[object]) -> None:
        """They stay in the epoll set, but curl does not wait for them: a ready one must not make poll spin."""
        with Receiver(Reply(delay_s=0.05)) as receiver:
            for tag in range(50):
                client.start(tag, make_request(receiver.url))
            collect(client, 50)
        spent = thread_time()
        assert client.poll(0.3) == []
        assert thread_time() - spent < 0.1

    def test_number_of_idle_connections_is_limited(
        self, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("services.webhooks.http.client._MAX_CONNECTIONS", 10)
        receiver.answer = Reply(delay_s=0.1)
        with open_client() as sparing:
            for tag in range(40):
                sparing.start(tag, make_request(receiver.url))
            assert {answer.status_code for _, answer in collect(sparing, 40)} == {200}
            eventually(lambda: sparing.poll(0) == [] and receiver.open_connections <= 10)
            assert receiver.open_connections == 10

    def test_closed_client_leaks_no_sockets(self) -> None:
        before = psutil.Process().num_fds()
        with Receiver(Reply(delay_s=0.05)) as receiver, open_client() as client:
            for tag in range(50):
                client.start(tag, make_request(receiver.url))
            collect(client, 50)
        assert psutil.Process().num_fds() <= before  # sockets of earlier tests may be closed meanwhile


class TestReusedHandles:
    def test_url_body_and_signature_are_those_of_the_request(
        self, receiver: Receiver, client: WebhookClient[object]
    ) -> None:
        with Receiver(Reply(201)) as other:
            for number in range(20):
                url = other.url if number % 3 else receiver.url
                body = b"x" * (1000 - 50 * number)
                assert send_one(client, url, body, f"{number:064x}").status_code == (
                    201 if number % 3 else 200
                )
            requests = sorted(receiver.requests + other.requests, key=lambda request: request.at)
        assert [len(request.body) for request in requests] == [1000 - 50 * number for number in range(20)]
        signatures = [request.headers["service-signature"] for request in requests]
        assert signatures == [f"{number:064x}" for number in range(20)]

    def test_body_and_status_of_another_response_are_not_kept(
        self, receiver: Receiver, client: WebhookClient[object]
    ) -> None:
        replies = [
            Reply(200, b"long " * 100),
            Reply(500),
            Reply(200, closes=True),
            Reply(204),
            Reply(200, b"x"),
        ]
        for reply in replies:
            receiver.answer = reply
            answer = send_one(client, receiver.url)
            assert (answer.status_code, answer.body) == (reply.status, reply.body)
        refused = send_one(client, "http://127.0.0.1:1/")
        assert (refused.status_code, refused.failure, refused.body) == (None, TryFailure.REFUSED, b"")
        unknown = send_one(client, "http://resolve_nothing.example/")
        assert (unknown.status_code, unknown.failure, unknown.body) == (None, TryFailure.DNS, b"")

    def test_a_complete_response_does_not_complete_the_next_one(self, client: WebhookClient[object]) -> None:
        """All headers arrived the first time, only some the second time."""
        answers = iter([b"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 1\r\n\r\nx", b"HTTP/1.1 200 OK\r\n"])
        with ScriptedReceiver(lambda peer: peer.say(next(answers))) as scripted:
            assert send_one(client, scripted.url).status_code == 200
            assert send_one(client, scripted.url).failure == TryFailure.BROKEN_ANSWER

    def test_cookies_are_not_kept(self, client: WebhookClient[object]) -> None:
        seen: list[bytes] = []

        def script(peer: Peer) -> None:
            seen.append(peer.read_request())
            peer.say(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/\r\nContent-Length: 0\r\n\r\n")

        with ScriptedReceiver(script, reads_requests=False) as scripted:
            for _ in range(2):
                send_one(client, scripted.url)
        assert len(seen) == 2
        assert not any(b"cookie" in request.lower() for request in seen)


class TestPoll:
    def test_poll_without_a_timeout_does_not_wait(
        self, receiver: Receiver, client: WebhookClient[object]
    ) -> None:
        receiver.answer = Reply(hangs=True)
        client.start("hangs", make_request(receiver.url))
        began = monotonic()
        for _ in range(10):
            assert client.poll(0) == []
        assert monotonic() - began < 5

    def test_poll_waits_as_long_as_requested_despite_timers_of_curl(self, receiver: Receiver) -> None:
        receiver.answer = Reply(hangs=True)
        with open_client(limit_s=20) as client:
            for number in range(20):
                client.start(number, make_request(receiver.url))
            for _ in range(3):
                began = monotonic()
                assert client.poll(0.2) == []
                assert 0.19 <= monotonic() - began < 10

    def test_poll_waits_without_requests_in_flight(self, client: WebhookClient[object]) -> None:
        began = monotonic()
        assert client.poll(0.2) == []
        assert 0.19 <= monotonic() - began < 10

    def test_poll_returns_as_soon_as_requests_have_ended(
        self, receiver: Receiver, client: WebhookClient[object]
    ) -> None:
        receiver.answer = Reply(delay_s=0.1)
        client.start("soon", make_request(receiver.url))
        began = monotonic()
        ((tag, _),) = client.poll(20)
        assert tag == "soon"
        assert monotonic() - began < 10

    def test_results_are_in_the_order_in_which_requests_end(
        self, receiver: Receiver, client: WebhookClient[object]
    ) -> None:
        receiver.answer = lambda request: Reply(delay_s=float(request.body))
        for delay_s in (1.3, 0.1, 0.7):
            client.start(delay_s, make_request(receiver.url, str(delay_s).encode()))
        assert [tag for tag, _ in collect(client, 3)] == [0.1, 0.7, 1.3]

    def test_tags_need_not_be_hashable_or_unique(
        self, receiver: Receiver, client: WebhookClient[object]
    ) -> None:
        tag: dict[str, list[int]] = {"a": []}
        for _ in range(3):
            client.start(tag, make_request(receiver.url))
        assert [one for one, _ in collect(client, 3)] == [tag] * 3

    def test_each_of_many_requests_has_one_result(
        self, receiver: Receiver, client: WebhookClient[object]
    ) -> None:
        """Some with a response, some without, some that were never sent."""

        def mixed(request: Received) -> Reply:
            number = int(request.body)
            return Reply(200 + number % 5, closes=number % 7 == 0, delay_s=0.01 * (number % 3))

        receiver.answer = mixed
        urls = [
            receiver.url,
            receiver.url,
            "http://127.0.0.1:1/",
            "ftp://127.0.0.1/",
            "http://resolve_nothing.example/",
        ]
        for number in range(500):
            client.start(number, make_request(urls[number % 5], b"%d" % number))
        assert client.in_flight == 500
        answers = dict(collect(client, 500))
        assert sorted(answers) == list(range(500))  # type: ignore[type-var]
        assert client.in_flight == 0
        assert client.poll(0.05) == []
        assert all((answer.status_code is None) != (answer.failure is None) for answer in answers.values())
        assert [answers[number].status_code for number in (0, 1, 5, 6)] == [200, 201, 200, 201]
        assert [answers[number].failure for number in (2, 3, 4)] == [
            TryFailure.REFUSED,
            TryFailure.BLOCKED_ADDRESS,
            TryFailure.DNS,
        ]


class TestWake:
    def test_wake_ends_a_poll(self, receiver: Receiver, client: WebhookClient[object]) -> None:
        receiver.answer = Reply(hangs=True)
        client.start("hangs", make_request(receiver.url))
        timer = Timer(0.1, client.wake)
        timer.start()
        began = monotonic()
        assert client.poll(10) == []
        assert monotonic() - began < 5
        timer.join()

    def test_wakes_before_a_poll_end_only_that_poll(self, client: WebhookClient[object]) -> None:
        client.wake()
        client.wake()
        began = monotonic()
        assert client.poll(10) == []
        assert monotonic() - began < 5
        began = monotonic()
        assert client.poll(0.2) == []
        assert monotonic() - began > 0.15

    def test_no_wake_is_lost_between_two_threads(self, client: WebhookClient[object]) -> None:
        """They pass a token back and forth. A lost wake would stop them."""
        token, done = Event(), Event()

        def other() -> None:
            for _ in range(500):
                assert token.wait(10)
                token.clear()
                client.wake()
            done.set()

        thread = Thread(target=other)
        thread.start()
        deadline = monotonic() + 20
        for _ in range(500):
            token.set()
            client.poll(10)
            assert monotonic() < deadline
        assert done.wait(10)
        thread.join()

    def test_wake_after_close_writes_to_no_file(self) -> None:
        """Its descriptor may belong to another file by then."""
        made: WebhookClient[object] = WebhookClient(allow_private=True)
        made.close()
        reader, writer = os.pipe()
        made.wake()
        os.close(writer)
        assert os.read(reader, 100) == b""
        os.close(reader)


class TestAbandon:
    def test_abandoned_requests_have_no_result_and_the_others_continue(
        self, receiver: Receiver, client: WebhookClient[object]
    ) -> None:
        receiver.answer = Reply(delay_s=0.2)
        for number in range(20):
            client.start(number, make_request(receiver.url))
        client.poll(0.05)
        assert client.abandon(lambda tag: int(str(tag)) % 2 == 0) == list(range(0, 20, 2))
        assert client.in_flight == 10
        assert sorted(str(tag) for tag, _ in collect(client, 10)) == sorted(map(str, range(1, 20, 2)))
        assert client.poll(0.3) == []

    def test_requests_that_have_not_started_or_just_ended_are_abandoned(self, receiver: Receiver) -> None:
        may_answer = Event()

        def slow_resolve(_host: str, _port: int) -> list[str]:
            may_answer.wait(10)
            return ["127.0.0.1"]

        with open_client(resolve_host=slow_resolve) as client:
            client.start("new", make_request(receiver.url))
            client.start("refused", make_request("gopher://127.0.0.1/"))
            client.start("waits for its name", make_request(f"http://shop.example:{receiver.port}/"))
            assert client.in_flight == 3
            assert client.abandon(lambda _: True) == ["new", "waits for its name", "refused"]
            assert client.in_flight == 0
            may_answer.set()
            assert client.poll(0.2) == []
            assert send_one(client, f"http://shop.example:{receiver.port}/").status_code == 200

    def test_the_connection_of_an_abandoned_request_is_closed(self, client: WebhookClient[object]) -> None:
        hung_up = Event()

        def script(peer: Peer) -> None:
            with suppress(OSError):
                peer.hang()
            hung_up.set()

        with ScriptedReceiver(script) as scripted:
            client.start("x", make_request(scripted.url))
            while not scripted.connections:
                client.poll(0.01)
            client.poll(0.05)
            client.abandon(lambda _: True)
            client.poll(0)
            assert hung_up.wait(30)


class TestErrors:
    def test_all_requests_have_a_result_if_curl_fails_and_later_ones_are_sent(
        self, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, capsys: Any
    ) -> None:
        """For example if its socket callback raises."""
        receiver.answer = Reply(hangs=True)
        with open_client(limit_s=60) as client:
            for number in range(10):
                client.start(number, make_request(receiver.url))
            client.poll(0.05)
            monkeypatch.setattr(client._sockets, "_masks", _RaisesOnce(client._sockets._masks))
            client.start(10, make_request(receiver.url))
            answers = dict(collect(client, 11))
            assert sorted(answers) == list(range(11))  # type: ignore[type-var]
            assert {answer.failure for answer in answers.values()} == {TryFailure.BROKEN_ANSWER}
            receiver.answer = Reply(200)
            assert send_one(client, receiver.url).status_code == 200
        assert "boom" in capsys.readouterr().err

    def test_an_error_in_a_callback_fails_only_that_request(
        self, receiver: Receiver, client: WebhookClient[object], monkeypatch: pytest.MonkeyPatch, capsys: Any
    ) -> None:
        def broken(*_: object) -> bool:
            raise RuntimeError("boom")

        with open_client(allow_private=False, resolve_host=lambda _host, _port: ["127.0.0.1"]) as strict:
            monkeypatch.setattr("services.webhooks.http.curl_handle.is_public_address", broken)
            failed = send_one(strict, f"https://shop.example:{receiver.port}/")
            assert failed.failure == TryFailure.UNREACHABLE
            monkeypatch.undo()
            blocked = send_one(strict, f"https://shop.example:{receiver.port}/")
            assert blocked.failure == TryFailure.BLOCKED_ADDRESS
        assert "boom" in capsys.readouterr().err
        assert receiver.connections == 0

    def test_socket_that_cannot_be_registered_times_out(
        self, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with open_client(limit_s=2) as client:
            assert send_one(client, receiver.url).status_code == 200
            working = client._sockets._epoll
            monkeypatch.setattr(client._sockets, "_epoll", _Full(working))
            with Receiver() as other:
                assert send_one(client, other.url).failure == TryFailure.TIMEOUT
                monkeypatch.undo()
                assert send_one(client, other.url).status_code == 200

    def test_close_ends_requests_in_flight_and_can_be_repeated(self, receiver: Receiver) -> None:
        receiver.answer = Reply(hangs=True)
        made: WebhookClient[object] = WebhookClient(allow_private=True)
        for number in range(10):
            made.start(number, make_request(receiver.url))
        made.poll(0.05)
        made.close()
        assert made.in_flight == 0
        reader, writer = os.pipe()
        made.close()
        os.close(reader)
        os.close(writer)


class TestCost:
    """Ratios of CPU time on the client's thread. The receiver has another thread."""

    def test_thousands_of_hanging_requests_use_little_cpu(self, receiver: Receiver) -> None:
        _allow_many_files()
        receiver.answer = lambda request: Reply(hangs=request.path == "/hang")
        hang = receiver.url.replace("/hooks", "/hang")
        with open_client(limit_s=60) as client:
            alone = _cpu_of(client, receiver.url, 300)
            for number in range(2000):
                client.start(("hangs", number), make_request(hang))
            while len(receiver.requests) < 2900:
                assert client.poll(0.05) == []
            idle = thread_time()
            assert client.poll(0.5) == []
            assert (thread_time() - idle) / 0.5 < 0.2
            with Receiver() as other:
                assert _cpu_of(client, other.url, 300) < 3 * alone
            assert len(client.abandon(lambda _: True)) == 2000


def _cpu_of(client: WebhookClient[object], url: str, number: int) -> float:
    def run() -> None:
        for _ in range(number // 10):
            for tag in range(10):
                client.start(tag, make_request(url))
            collect(client, 10)

    run_times = []
    for _ in range(3):
        began = thread_time()
        run()
        run_times.append(thread_time() - began)
    return min(run_times)


def _allow_many_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 6000:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(6000, hard), hard))


class _RaisesOnce(dict[int, int]):
    has_raised = False

    def get(self, key: int, default: Any = None, /) -> Any:
        if not self.has_raised:
            self.has_raised = True
            raise RuntimeError("boom")
        return super().get(key, default)


class _Full:
    """An epoll that accepts no more sockets."""

    def __init__(self, epoll: Any) -> None:
        self._epoll = epoll

    def __getattr__(self, name: str) -> Any:
        return getattr(self._epoll, name)

    def register(self, *_: object) -> None:
        raise OSError("No space left on device")
