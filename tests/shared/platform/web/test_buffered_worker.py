"""When a request has arrived: pure, byte by byte; and what becomes of one that arrives late on an idle connection."""

import socket
from collections import deque
from selectors import EVENT_READ, DefaultSelector
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest
from gunicorn.config import Config  # type: ignore[import-untyped]
from gunicorn.http import parser as http_parser  # type: ignore[import-untyped]
from gunicorn.http.parser import RequestParser  # type: ignore[import-untyped]

from shared.platform.web.app import MAX_BODY_BYTES
from shared.platform.web.buffered_worker import BufferedWorker, bytes_missing

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\ncontent-LENGTH:  5 \r\n\r\nhello"
CHUNKS = b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n"
LARGEST = b"POST / HTTP/1.1\r\nContent-Length: 65536\r\n\r\n" + b"x" * MAX_BODY_BYTES
BODY = b"5\r\nhello\r\nA;name=value\r\n0\r\n\r\n56789\r\n0\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [GET, POST, CHUNKS + BODY + b"\r\n", CHUNKS + BODY + b"Trailer: x\r\n\r\n", CHUNKS + b"0\r\n\r\n"],
)
def test_request_is_complete_with_its_last_byte(request_bytes: bytes) -> None:
    """Also if another one follows."""
    assert bytes_missing(request_bytes) == 0
    assert bytes_missing(request_bytes + GET) == 0
    for end in range(len(request_bytes)):
        assert 1 <= bytes_missing(request_bytes[:end]) <= len(request_bytes) - end


def test_rest_of_a_body_of_known_length_is_waited_for_at_once() -> None:
    assert [bytes_missing(POST[:end]) for end in range(len(POST) - 6, len(POST) + 1)] == [1, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize("size", [b"x\r\n", b"-5\r\n", b"\r\n", b"123456789\r\n", b"5 5\r\n"])
def test_invalid_chunk_size_is_left_to_the_parser(size: bytes) -> None:
    assert bytes_missing(CHUNKS + size) == 0


def test_bodies_that_are_too_large_are_not_waited_for() -> None:
    """The application refuses them: at the length that is announced, or when it has read so much."""
    head = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n"
    assert bytes_missing(head % (MAX_BODY_BYTES + 1)) == 0
    assert bytes_missing(head % MAX_BODY_BYTES) == MAX_BODY_BYTES
    assert bytes_missing(CHUNKS + b"ffffff\r\n" + b"x" * (MAX_BODY_BYTES + 1)) == 0
    assert bytes_missing(CHUNKS + b"ffffff\r\n" + b"x" * MAX_BODY_BYTES) == 1


def test_many_small_chunks_are_waited_for_although_they_take_more_bytes() -> None:
    """Regression: their sizes counted as content, and a thread waited for the rest."""
    chunks = CHUNKS + b"1\r\nx\r\n" * (MAX_BODY_BYTES // 4)
    assert len(chunks) > MAX_BODY_BYTES
    assert bytes_missing(chunks) == 1
    assert bytes_missing(chunks + b"0\r\n\r\n") == 0


class IdleWorker(BufferedWorker):
    """A worker whose connections are all idle for too long. It records what would get a thread."""

    def __init__(self, *sockets: socket.socket) -> None:
        self.enqueued: list[socket.socket] = []
        self.closed: list[socket.socket] = []
        self.poller = DefaultSelector()
        self.keepalived_conns = deque(self.connection(each) for each in sockets)
        self.nr_conns = len(sockets)

    def connection(self, one: socket.socket, idle_until: float = 0.0) -> Any:
        self.poller.register(one, EVENT_READ)
        return SimpleNamespace(sock=one, timeout=idle_until, close=lambda: self.closed.append(one))

    def enqueue_req(self, conn: Any) -> None:
        self.enqueued.append(conn.sock)


@pytest.mark.parametrize("force", [False, True])
def test_idle_connection_on_which_a_request_has_arrived_is_not_closed(force: bool) -> None:
    """500 customers at once: the loop was too busy to see the request before the time of the connection was up.

    When the worker stops, all are closed.
    """
    pairs = [socket.socketpair() for _ in range(3)]
    (client, used), (_, idle), (gone, left) = pairs
    client.sendall(GET)
    gone.close()
    worker = IdleWorker(used, idle, left)
    worker.murder_keepalived(force)
    assert worker.enqueued == ([] if force else [used])
    assert worker.closed == ([used, idle, left] if force else [idle, left])
    assert worker.nr_conns == len(worker.enqueued)
    worker.poller.close()
    for pair in pairs:
        for one in pair:
            one.close()


def test_request_that_arrives_while_idle_connections_are_closed_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine this takes long, and the time of more connections is up meanwhile."""
    (client, used), (other_client, other) = socket.socketpair(), socket.socketpair()
    for each in (client, other_client):
        each.sendall(GET)
    worker = IdleWorker(used)
    worker.keepalived_conns.append(worker.connection(other, monotonic() + 0.05))
    worker.nr_conns += 1
    monkeypatch.setattr(worker, "enqueue_req", lambda _: sleep(0.1))
    worker.murder_keepalived()
    assert worker.closed == []
    worker.poller.close()
    for one in (client, used, other_client, other):
        one.close()


@pytest.mark.parametrize(
    ("request_bytes", "is_kept"),
    [
        (GET, True),
        (POST, True),
        (POST[:-1], False),
        (CHUNKS + b"5\r\nhello\r\n0\r\n\r\n", True),
        (CHUNKS + b"5\r\nhello\r\nx\r\n", False),
        (CHUNKS + b"5\r\nhello\r\n0\r\nno trailer\r\n\r\n", False),
        (LARGEST, True),
        (LARGEST.replace(b"65536", b"65537") + b"x", False),
    ],
)
def test_connection_is_kept_if_its_request_was_read_whole_however_long_the_thread_was_paused(
    request_bytes: bytes, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: on a busy machine, connections were closed just when the next request came."""
    client, served = socket.socketpair()
    client.sendall(request_bytes)
    parser = RequestParser(Config(), served, ("127.0.0.1", 1))
    next(parser)
    monkeypatch.setattr(http_parser.time, "monotonic", lambda: monotonic() + 1)
    worker = IdleWorker()
    conn: Any = SimpleNamespace(sock=served, parser=parser)
    assert worker._keepalive_after(conn, keepalive=True) is is_kept
    assert not worker._keepalive_after(conn, keepalive=False)
    worker.poller.close()
    client.close()
    served.close()
