"""A load generator: sends HTTP requests over a fixed number of connections, each after the response to the last.

It is a loop over raw sockets, because it competes with the measured service for the processor.
Usage: python -m bench.http_load, with a LoadPlan as JSON on standard input; prints a LoadResult as JSON.
"""

import select
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from time import perf_counter

import msgspec

from bench.figures import percentile

STALLED_S = 120.0
"""After so long without any response the service is considered stuck."""


class LoadPlan(msgspec.Struct):
    port: int
    head: str
    """The request up to its last header, without the blank line. {n} is replaced by each of `items` in turn."""
    body: str
    """{n} is replaced by a new number for each request."""
    items: list[str]
    connections: int
    seconds: float
    wanted: int
    first: int = 0


class LoadResult(msgspec.Struct):
    answers: int
    seconds: float
    unwanted: dict[str, int]
    """How many responses had each status other than the wanted one."""
    p50_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        return self.answers / self.seconds


def run(plan: LoadPlan) -> LoadResult:
    """Send requests for `plan.seconds`, and longer if no response has come by then: a slow machine gives fewer of them.

    Raises TimeoutError if no response comes for STALLED_S, and ConnectionError if the service closes a connection.
    """
    with ExitStack() as stack:
        poller = stack.enter_context(select.epoll())
        address = ("127.0.0.1", plan.port)
        lines = [stack.enter_context(socket.create_connection(address)) for _ in range(plan.connections)]
        return _send_in_turn(plan, lines, poller)


def _send_in_turn(plan: LoadPlan, lines: list[socket.socket], poller: select.epoll) -> LoadResult:
    requests = _requests(plan)
    wanted = f"HTTP/1.1 {plan.wanted}".encode()
    by_number = {line.fileno(): line for line in lines}
    began: dict[int, float] = {}
    read: dict[int, bytes] = dict.fromkeys(by_number, b"")
    latencies: list[float] = []
    unwanted: Counter[str] = Counter()
    started = answered_at = perf_counter()
    for number, line in by_number.items():
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poller.register(number, select.EPOLLIN)
        began[number] = perf_counter()
        line.sendall(next(requests))
    while (now := perf_counter()) < started + plan.seconds or not latencies:
        if now > answered_at + STALLED_S:
            raise TimeoutError(f"no response came within {STALLED_S:.0f} s")
        for number, _ in poller.poll(1):
            line = by_number[number]
            chunk = line.recv(65536)
            if not chunk:
                raise ConnectionError("the service closed a connection")
            answer = read[number] = read[number] + chunk
            if not _is_complete(answer):
                continue
            now = answered_at = perf_counter()
            latencies.append(now - began[number])
            if not answer.startswith(wanted):
                unwanted[answer[9:12].decode(errors="replace")] += 1
            read[number] = b""
            began[number] = now
            line.sendall(next(requests))
    return LoadResult(
        len(latencies),
        now - started,
        unwanted,
        percentile(latencies, 0.5) * 1000,
        percentile(latencies, 0.99) * 1000,
    )


def _requests(plan: LoadPlan) -> Iterator[bytes]:
    number = plan.first
    while True:
        number += 1
        item = plan.items[number % len(plan.items)] if plan.items else ""
        head = plan.head.replace("{n}", item)
        body = plan.body.replace("{n}", str(number)).encode()
        yield f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _is_complete(answer: bytes) -> bool:
    head, blank, body = answer.partition(b"\r\n\r\n")
    if not blank:
        return False
    after = head.lower().partition(b"content-length:")[2]
    return len(body) >= int(after.partition(b"\r\n")[0])


if __name__ == "__main__":
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=LoadPlan)
    sys.stdout.buffer.write(msgspec.json.encode(run(plan)))
