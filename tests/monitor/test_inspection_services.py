"""Readiness checks of services: any response, or none, gives a status within seconds."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread
from time import monotonic, sleep

import pytest

from services.monitor.inspection.services import TIMEOUT_S, check_services, parse_reasons
from stack.ports import find_free_ports

DEEP = b'{"checks":' + b"[" * 20_000 + b"]" * 20_000 + b"}"


@contextmanager
def answering(answer: bytes | Callable[[socket.socket], None]) -> Iterator[str]:
    """Run a server that sends `answer` on each connection and keeps it open, or calls `answer`."""
    server = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []
    talk = answer if callable(answer) else partial(_say, answer=answer)

    def serve() -> None:
        with suppress(OSError):  # closed at the end of the test
            while True:
                held.append(server.accept()[0])
                Thread(target=talk, args=(held[-1],), daemon=True).start()

    Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.close()
        for connection in held:
            connection.close()


def _say(connection: socket.socket, answer: bytes) -> None:
    with suppress(OSError):  # the client has closed the connection
        connection.sendall(answer)


def _drip(connection: socket.socket) -> None:
    with suppress(OSError):
        while True:
            connection.sendall(b"H")
            sleep(0.2)  # slow on purpose


def http(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def test_ready_and_unready_services_are_reported() -> None:
    checks = {"database": "ok", "kafka": "no answer within 2 s"}
    with (
        answering(http("200 OK", b"{}")) as ready,
        answering(http("503 Service Unavailable", json.dumps({"checks": checks}).encode())) as unready,
    ):
        first, second = check_services({"api": ready, "webhooks": unready})
    assert (first.name, first.is_up, first.is_ready, first.reasons) == ("api", True, True, ())
    assert first.latency_s is not None
    assert (second.is_up, second.is_ready, second.reasons) == (True, False, ("kafka: no answer within 2 s",))


def test_down_hanging_and_slow_services_do_not_delay_the_check_of_others() -> None:
    """All checks together take no longer than one timeout."""
    closed = f"http://127.0.0.1:{find_free_ports(1)[0]}"
    began = monotonic()
    with (
        answering(b"") as silent,
        answering(_drip) as dripping,
        answering(http("200 OK", b"{}")) as ready,
    ):
        targets = {"closed": closed, "silent": silent, "dripping": dripping, "ready": ready}
        seen = {one.name: one for one in check_services(targets)}
    assert monotonic() - began < 10
    assert [name for name, one in seen.items() if one.is_up] == ["ready"]
    for name in ("closed", "silent", "dripping"):
        assert len(seen[name].reasons) == 1
        assert (seen[name].is_ready, seen[name].latency_s) == (False, None)


def test_endless_response_is_cut_off_before_the_timeout() -> None:
    def talk(connection: socket.socket) -> None:
        with suppress(OSError):  # the client has closed the connection
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                connection.sendall(b"x" * 65_536)

    with answering(talk) as endless:
        [seen] = check_services({"api": endless})
    assert (seen.is_up, seen.is_ready, seen.reasons) == (True, False, ("response too long",))
    assert seen.latency_s is not None
    assert seen.latency_s < TIMEOUT_S


def test_readiness_check_follows_no_redirects() -> None:
    with answering(
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    ) as elsewhere:
        [seen] = check_services({"api": elsewhere})
    assert (seen.is_ready, seen.reasons) == (False, ("status 302",))


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe", b"[]", b"null", b'"text"', b'{"checks": 5}', b'{"checks": ["a"]}', DEEP],
    ids=["empty", "no text", "a list", "null", "text", "a number", "a list of checks", "deep"],
)
def test_malformed_response_is_reported_by_its_status(body: bytes) -> None:
    assert parse_reasons(503, body) == ("status 503",)


def test_reasons_of_a_service_are_shortened_and_sanitized() -> None:
    checks = {f"check {n}": "<script>\x1b[31m\u202e" + "x" * 5000 for n in range(50)}
    with answering(http("503 Service Unavailable", json.dumps({"checks": checks}).encode()[:30_000])) as cut:
        [seen] = check_services({"api": cut})
    assert seen.reasons == ("status 503",)
    few = {"a": {"nested": True}, "b": "<script>\x1b[31m\u202e" + "x" * 5000}
    with answering(http("503 Service Unavailable", json.dumps({"checks": few}).encode())) as hostile:
        [seen] = check_services({"api": hostile})
    assert len(seen.reasons) == 2
    assert max(map(len, seen.reasons)) <= 200
    assert not any({"\x1b", "\u202e"} & set(reason) for reason in seen.reasons)


def test_check_without_targets_returns_nothing() -> None:
    assert check_services({}) == ()
