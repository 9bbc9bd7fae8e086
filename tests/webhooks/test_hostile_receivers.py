"""Whatever a receiver does, a try has one result, in time and with bounded memory. §6.6"""

import gzip
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import repeat
from ssl import SSLContext

import psutil
import pytest

from services.webhooks.http.client import TryResult, WebhookRequest
from shared.domain.deliveries.try_results import RESPONSE_BODY_LIMIT, TryFailure
from tests.webhooks.certificates import Authority
from tests.webhooks.receivers import Peer, Script, ScriptedReceiver, collect, open_client, send_one

LIMIT_S = 1.5
OK = b"HTTP/1.1 200 OK\r\n"
SHORT = OK + b"Content-Length: 2\r\n\r\nok"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
MEGABYTE = 1024 * 1024


def says(*what: bytes) -> Script:
    """Send these bytes and close the connection."""

    def script(peer: Peer) -> None:
        for part in what:
            peer.say(part)

    return script


def says_and_hangs(*what: bytes) -> Script:
    def script(peer: Peer) -> None:
        says(*what)(peer)
        peer.hang()

    return script


def says_forever(first: bytes, again: bytes) -> Script:
    def script(peer: Peer) -> None:
        peer.say(first)
        for part in repeat(again):
            peer.say(part)

    return script


def drips(what: bytes, every_s: float = 0.01) -> Script:
    def script(peer: Peer) -> None:
        for byte in what:
            peer.say(bytes([byte]))
            peer.pause(every_s)
        peer.hang()

    return script


def after_request(script: Script) -> Script:
    """Run the script after the request was received. Before that, a reset would look like a refused connection."""

    def hearing(peer: Peer) -> None:
        peer.socket.recv(65536)
        script(peer)

    return hearing


def resets_after(what: bytes) -> Script:
    def script(peer: Peer) -> None:
        peer.say(what)
        peer.reset()

    return script


# The script, and its result: a status code and the start of the body, or a failure.
OUTCOMES: dict[str, tuple[Script, int | TryFailure, bytes]] = {
    # Bodies: the headers are complete, so the status counts.
    "endless body": (says_forever(OK + b"\r\n", b"x" * 65536), 200, b"x" * RESPONSE_BODY_LIMIT),
    "endless body of an error": (
        says_forever(b"HTTP/1.1 500 Oh\r\n\r\n", b"x" * 65536),
        500,
        b"x" * RESPONSE_BODY_LIMIT,
    ),
    "endless chunks": (
        says_forever(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\n" * 1000),
        200,
        b"hellohello",
    ),
    "body announced as huge": (
        says_forever(OK + b"Content-Length: 999999999999\r\n\r\n", b"x" * 65536),
        200,
        b"xxx",
    ),
    "body of exactly the limit": (
        says(OK + b"Content-Length: %d\r\n\r\n" % RESPONSE_BODY_LIMIT, b"x" * RESPONSE_BODY_LIMIT),
        200,
        b"x" * RESPONSE_BODY_LIMIT,
    ),
    "slow drip of the body": (drips(OK + b"\r\n" + b"x" * 1000, 0.001), 200, b"xxx"),
    "headers, then silence": (says_and_hangs(OK + b"Content-Length: 5\r\n\r\n"), 200, b""),
    "hangs up in the body": (says(OK + b"Content-Length: 50\r\n\r\nhalf"), 200, b"half"),
    "resets in the body": (resets_after(OK + b"Content-Length: 50\r\n\r\nhalf"), 200, b""),
    "length too short": (says(OK + b"Content-Length: 2\r\n\r\nhello"), 200, b"he"),
    "length too long for a number": (
        says(OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\nhello"),
        200,
        b"hello",
    ),
    "chunks of garbage": (says(OK + b"Transfer-Encoding: chunked\r\n\r\nzzz\r\nhello"), 200, b""),
    "a chunk that is too large for a number": (
        says(OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\nhello"),
        200,
        b"",
    ),
    "trailers, then silence": (
        says_and_hangs(OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\nC: d\r\n"),
        200,
        b"",
    ),
    "many trailers": (
        says(OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"A: b\r\n" * 12 + b"\r\n"),
        200,
        b"",
    ),
    "gzip bomb": (
        says(
            OK + b"Content-Encoding: gzip\r\nContent-Length: 99999\r\n\r\n",
            gzip.compress(bytes(MEGABYTE * 64)),
        ),
        200,
        b"\x1f\x8b",
    ),
    "garbage called gzip": (
        says(OK + b"Content-Encoding: gzip, br, zstd\r\nContent-Length: 4\r\n\r\nnope"),
        200,
        b"nope",
    ),
    "body with 204": (says(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"), 204, b""),
    "a second answer": (says(SHORT + b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"), 200, b"ok"),
    "lines that end in LF": (says(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"), 200, b"ok"),
    "a folded header": (says(OK + b"A: b\r\n c\r\nContent-Length: 2\r\n\r\nok"), 200, b"ok"),
    "HTTP/1.0": (says(b"HTTP/1.0 200 OK\r\n\r\nok"), 200, b"ok"),
    # Endless headers.
    "slow drip of headers": (drips(OK + b"A: " + b"x" * 1000), TryFailure.TIMEOUT, b""),
    "headers that stop": (says_and_hangs(OK + b"A: b\r\n"), TryFailure.TIMEOUT, b""),
    "silence": (Peer.hang, TryFailure.TIMEOUT, b""),
    "hangs up in the headers": (says(OK + b"Content-Length: 2\r\n"), TryFailure.BROKEN_ANSWER, b""),
    "hangs up in a header": (says(OK + b"Content-Len"), TryFailure.BROKEN_ANSWER, b""),
    "hangs up in the last line": (says(OK + b"Content-Length: 0\r\n\r"), TryFailure.BROKEN_ANSWER, b""),
    "hangs up after the status": (says(OK), TryFailure.BROKEN_ANSWER, b""),
    "resets in the headers": (resets_after(OK), TryFailure.BROKEN_ANSWER, b""),
    "resets": (Peer.reset, TryFailure.BROKEN_ANSWER, b""),
    "hangs up": (says(), TryFailure.BROKEN_ANSWER, b""),
    "headers of 1 MB": (says(OK + b"A: bcdefghijk\r\n" * 70_000 + b"\r\n"), TryFailure.BROKEN_ANSWER, b""),
    "a header of 1 MB": (says(OK + b"A: " + b"x" * MEGABYTE + b"\r\n\r\n"), TryFailure.BROKEN_ANSWER, b""),
    "endless small headers": (says_forever(OK, b"A: b\r\n" * 1000), TryFailure.BROKEN_ANSWER, b""),
    "an endless header": (says_forever(OK + b"A: ", b"x" * 65536), TryFailure.BROKEN_ANSWER, b""),
    # 1xx is not a final response.
    "100, then 200": (says(CONTINUE * 3 + SHORT), 200, b"ok"),
    "103, then 200": (says(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + SHORT), 200, b"ok"),
    "endless 100s": (says_forever(b"", CONTINUE * 1000), TryFailure.BROKEN_ANSWER, b""),
    "a 100 now and then": (drips(CONTINUE * 100, 0.001), TryFailure.TIMEOUT, b""),
    "100, then silence": (says_and_hangs(CONTINUE), TryFailure.TIMEOUT, b""),
    "100, then hangs up": (says(CONTINUE), TryFailure.BROKEN_ANSWER, b""),
    "100, then half of 200": (says(CONTINUE + OK + b"Content-Length: 2\r\n"), TryFailure.BROKEN_ANSWER, b""),
    "101": (says(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"), TryFailure.BROKEN_ANSWER, b""),
    "101, then silence": (
        says_and_hangs(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"),
        TryFailure.BROKEN_ANSWER,
        b"",
    ),
    "101, then 200": (
        says(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n" + SHORT),
        TryFailure.BROKEN_ANSWER,
        b"",
    ),
    # Not HTTP.
    "HTTP/0.9": (says(b"<html>200 OK</html>"), TryFailure.BROKEN_ANSWER, b""),
    "garbage": (says(bytes(range(256)) * 64), TryFailure.BROKEN_ANSWER, b""),
    "endless garbage": (says_forever(b"", b"\x00" * 65536), TryFailure.BROKEN_ANSWER, b""),
    "another protocol": (says(b"ICY 200 OK\r\n\r\n"), TryFailure.BROKEN_ANSWER, b""),
    "an unknown version": (says(b"HTTP/7.3 200 OK\r\n\r\n"), TryFailure.BROKEN_ANSWER, b""),
    "a version of bytes": (says(b"HTTP/\xff\xfe 200 OK\r\n\r\n"), TryFailure.BROKEN_ANSWER, b""),
    "status 000": (says(b"HTTP/1.1 000 Oh\r\nContent-Length: 0\r\n\r\n"), TryFailure.BROKEN_ANSWER, b""),
    "status 099": (says(b"HTTP/1.1 099 Oh\r\nContent-Length: 0\r\n\r\n"), TryFailure.BROKEN_ANSWER, b""),
    "status 20": (says(b"HTTP/1.1 20 Oh\r\nContent-Length: 0\r\n\r\n"), TryFailure.BROKEN_ANSWER, b""),
    "status 999": (says(b"HTTP/1.1 999 Oh\r\nContent-Length: 0\r\n\r\n"), 999, b""),
    # Contradictory headers: it is undefined where such a response ends (RFC 9112, 6.3).
    "negative length": (says(OK + b"Content-Length: -5\r\n\r\nhello"), TryFailure.BROKEN_ANSWER, b""),
    "two lengths": (
        says(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
        TryFailure.BROKEN_ANSWER,
        b"",
    ),
    "NUL in a header": (says(OK + b"A: b\x00c\r\n\r\n"), TryFailure.BROKEN_ANSWER, b""),
    # Redirects are not followed and count as failures. No credentials are sent.
    "redirect to a private address": (
        says(b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n"),
        302,
        b"",
    ),
    "redirect to itself": (
        says(b"HTTP/1.1 307 Again\r\nLocation: /hooks\r\nContent-Length: 0\r\n\r\n"),
        307,
        b"",
    ),
    "redirect to a file": (
        says(b"HTTP/1.1 301 Moved\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"),
        301,
        b"",
    ),
    "redirect to nonsense": (
        says(b"HTTP/1.1 303 Oh\r\nLocation: ht!tp:\\\\\r\nContent-Length: 0\r\n\r\n"),
        303,
        b"",
    ),
    "wants a password": (
        says(b"HTTP/1.1 401 Who\r\nWWW-Authenticate: Negotiate, Basic\r\nContent-Length: 0\r\n\r\n"),
        401,
        b"",
    ),
}


STALLING = [
    what for what, (_, expected, _) in OUTCOMES.items() if expected == TryFailure.TIMEOUT or "silence" in what
] + ["slow drip of the body"]
"""Receivers that make a try last until its limit."""


@pytest.mark.parametrize("what", [what for what in OUTCOMES if what not in STALLING])
def test_hostile_receiver_gives_one_result_in_time_with_bounded_memory(what: str) -> None:
    before = _memory()
    _expect_outcome(what)
    assert _memory() - before < 24 * MEGABYTE


def test_stalling_receivers_give_one_result_in_time_with_bounded_memory(subtests: pytest.Subtests) -> None:
    """At the same time, because each takes as long as a try may take."""
    before = _memory()
    with ThreadPoolExecutor(len(STALLING)) as tries:
        outcomes = {what: tries.submit(_expect_outcome, what) for what in STALLING}
    for what, outcome in outcomes.items():
        with subtests.test(what):
            outcome.result()
    assert _memory() - before < 24 * MEGABYTE


def _expect_outcome(what: str) -> None:
    script, expected, body = OUTCOMES[what]
    with ScriptedReceiver(script) as receiver, open_client(limit_s=LIMIT_S) as client:
        answer = send_one(client, receiver.url)
        assert (answer.failure or answer.status_code) == expected
        assert answer.body.startswith(body)
        assert len(answer.body) <= RESPONSE_BODY_LIMIT
        assert 0 <= answer.duration_ms < LIMIT_S * 1000 + 5000
        assert receiver.connections == 1


@pytest.mark.parametrize(
    "what", ["endless body", "endless 100s", "endless small headers", "silence", "garbage"]
)
def test_connection_that_misbehaved_is_not_reused(what: str) -> None:
    with ScriptedReceiver(OUTCOMES[what][0]) as receiver, open_client(limit_s=LIMIT_S) as client:
        first, second = send_one(client, receiver.url), send_one(client, receiver.url)
        assert (first.status_code, first.failure) == (second.status_code, second.failure)
        assert receiver.connections == 2


def test_receiver_that_never_reads_times_out() -> None:
    """The body does not fit into the socket buffers."""
    with (
        ScriptedReceiver(lambda peer: peer.pause(5), reads_requests=False) as receiver,
        open_client(limit_s=LIMIT_S) as client,
    ):
        assert send_one(client, receiver.url, body=b"x" * 20 * MEGABYTE).failure == TryFailure.TIMEOUT


def test_a_response_before_the_request_was_read_counts() -> None:
    with (
        ScriptedReceiver(says_and_hangs(SHORT), reads_requests=False) as receiver,
        open_client(limit_s=LIMIT_S) as client,
    ):
        assert send_one(client, receiver.url).status_code == 200


@pytest.mark.parametrize(
    "what", ["endless body", "endless chunks", "endless small headers", "a header of 1 MB"]
)
def test_many_hostile_responses_do_not_grow_memory(what: str) -> None:
    script, expected, _ = OUTCOMES[what]
    with ScriptedReceiver(script) as receiver, open_client(limit_s=10) as client:
        before = 0
        for _ in range(4):
            for tag in range(30):
                client.start(tag, WebhookRequest(receiver.url, b"{}", "0"))
            outcomes = {answer.failure or answer.status_code for _, answer in collect(client, 30)}
            assert outcomes == {expected}
            before = before or _memory()
        assert _memory() - before < 16 * MEGABYTE


def test_a_handle_with_large_headers_is_not_reused() -> None:
    """curl keeps headers until the next response, and there may be a thousand idle handles."""
    headers = b"A: bcdefghijk\r\n" * 4_000
    with open_client() as client:
        with ScriptedReceiver(says(OK + headers + b"Content-Length: 0\r\n\r\n")) as receiver:
            assert send_one(client, receiver.url).status_code == 200
        assert len(client._idle) == 0
        with ScriptedReceiver(says(SHORT)) as receiver:
            assert send_one(client, receiver.url).status_code == 200
        assert len(client._idle) == 1


def test_hostile_receivers_do_not_affect_a_well_behaved_one() -> None:
    hostile = ("endless body", "endless 100s", "slow drip of headers", "silence", "resets")
    with (
        ExitStack() as stack,
        ScriptedReceiver(_reply_to_each) as good,
        open_client(limit_s=5) as client,
    ):
        urls = [stack.enter_context(ScriptedReceiver(OUTCOMES[what][0])).url for what in hostile]
        for tag in range(10):
            for url in urls:
                client.start("hostile", WebhookRequest(url, b"{}", "0"))
            client.start(tag, WebhookRequest(good.url, b"{}", "0"))
        answers: list[TryResult] = []
        while len(answers) < 10:
            answers += [answer for tag, answer in client.poll(1) if tag != "hostile"]
        client.abandon(lambda _: True)
        assert {answer.status_code for answer in answers} == {200}
        assert max(answer.duration_ms for answer in answers) < 2000


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def test_private_certificate_authority_is_trusted_if_configured(authority: Authority) -> None:
    with ScriptedReceiver(_reply_to_each, tls=authority.receiver()) as receiver:
        with open_client(ca_file=authority.ca_file) as client:
            assert [send_one(client, receiver.url).status_code for _ in range(3)] == [200, 200, 200]
            assert receiver.connections == 1
        with open_client() as client:
            assert send_one(client, receiver.url).failure == TryFailure.TLS


@pytest.mark.parametrize(
    "certificate",
    [
        pytest.param(lambda authority: authority.self_signed_receiver(), id="self-signed"),
        pytest.param(lambda authority: authority.receiver("other.example"), id="for another host"),
        pytest.param(lambda authority: authority.receiver("127.0.0.2"), id="for another address"),
        pytest.param(lambda authority: authority.receiver(is_expired=True), id="expired"),
    ],
)
def test_invalid_certificate_is_a_tls_failure(
    authority: Authority, certificate: Callable[[Authority], SSLContext]
) -> None:
    with (
        ScriptedReceiver(_reply_to_each, tls=certificate(authority)) as receiver,
        open_client(ca_file=authority.ca_file) as client,
    ):
        assert send_one(client, receiver.url).failure == TryFailure.TLS


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(says(os.urandom(2000)), TryFailure.TLS, id="garbage"),
        pytest.param(says(SHORT), TryFailure.TLS, id="plain http"),
        pytest.param(after_request(says()), TryFailure.TLS, id="hangs up"),
        pytest.param(after_request(Peer.reset), TryFailure.TLS, id="resets"),
        pytest.param(Peer.hang, TryFailure.TIMEOUT, id="silence"),
        pytest.param(says_and_hangs(b"\x16\x03\x03\x40\x00"), TryFailure.TIMEOUT, id="half a record"),
    ],
)
def test_receiver_without_tls_on_https_is_a_failure(script: Script, expected: TryFailure) -> None:
    with (
        ScriptedReceiver(script, reads_requests=False) as receiver,
        open_client(limit_s=LIMIT_S) as client,
    ):
        assert send_one(client, receiver.url.replace("http:", "https:")).failure == expected


def _reply_to_each(peer: Peer) -> None:
    while True:
        peer.say(SHORT)
        peer.read_request()


def _memory() -> int:
    return int(psutil.Process().memory_info().rss)
