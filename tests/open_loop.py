"""An open-loop load generator for creates: requests start at a fixed rate, whether or not the last ones were answered.

That is how merchants' customers arrive: they do not wait for each other. A request takes a free connection, or opens
a new one. The generator is a process of its own, so that it does not compete with the test for the interpreter.
Usage: python -m tests.open_loop, with an OpenLoopPlan as JSON on standard input; prints an OpenLoopResult as JSON.
"""

import select
import socket
import subprocess
import sys
from collections import Counter, deque
from time import perf_counter

import msgspec

from bench.figures import percentile

REPEAT_EVERY = 10
"""Each tenth create repeats the reference of the one before, which is often still in progress."""
_STALLED_S = 30.0
"""After so long without any answer, those that are missing will not come. A busy machine takes its time."""
_TICK_S = 0.002


class OpenLoopPlan(msgspec.Struct):
    port: int
    path: str
    headers: dict[str, str]
    rate: float
    """Requests a second."""
    seconds: float
    connections: int
    """At most so many. A request that finds none free waits for one, and its waiting counts."""
    prefix: str
    """What all merchant references start with."""


class Latency(msgspec.Struct):
    """Milliseconds from sending a request to its complete answer."""

    p50: float = 0
    p99: float = 0
    worst: float = 0

    @classmethod
    def of(cls, seconds: list[float]) -> "Latency":
        if not seconds:
            return cls()
        return cls(
            *(1000 * value for value in (percentile(seconds, 0.5), percentile(seconds, 0.99), max(seconds)))
        )


class OpenLoopResult(msgspec.Struct):
    sent: int
    statuses: dict[str, int]
    """Answers by status. `closed`: the connection ended before the answer; `none`: no answer came in time."""
    accepted: Latency
    """Of 200 and 201."""
    refused: Latency
    late_ms: float
    """How late a request was sent at most, because the generator had no processor time or no free connection."""
    connections: int
    """How many were open at most."""
    malformed: list[str]
    """Some answers that are neither an intent nor an error with a message and Retry-After."""
    created: dict[str, str]
    """The uuid by reference, of each 201."""
    found: list[tuple[str, str]]
    """Reference and uuid of each 200."""
    created_twice: list[str]
    """References with more than one 201."""

    def count(self, *statuses: int) -> int:
        return sum(self.statuses.get(str(status), 0) for status in statuses)


def run_open_loop(plan: OpenLoopPlan) -> OpenLoopResult:
    """Run the generator in a process of its own and return what it got. Raises CalledProcessError if it fails."""
    finished = subprocess.run(
        [sys.executable, "-m", "tests.open_loop"],
        input=msgspec.json.encode(plan),
        stdout=subprocess.PIPE,
        check=True,
    )
    return msgspec.json.decode(finished.stdout, type=OpenLoopResult)


class _Request:
    __slots__ = ("due_at", "reference", "sent_at", "text")

    def __init__(self, reference: str, text: bytes, due_at: float) -> None:
        self.reference = reference
        self.text = text
        self.due_at = due_at
        self.sent_at = due_at


class _Line:
    """A connection and the request on it."""

    __slots__ = ("number", "received", "request", "socket")

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect_ex(address)
        self.number = self.socket.fileno()
        self.received = b""
        self.request: _Request | None = None


class _Tally:
    """Counts and checks answers."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.accepted: list[float] = []
        self.refused: list[float] = []
        self.malformed: list[str] = []
        self.created: dict[str, str] = {}
        self.found: list[tuple[str, str]] = []
        self.created_twice: list[str] = []

    def add(self, request: _Request, head: bytes, body: bytes) -> None:
        seconds = perf_counter() - request.sent_at
        status = head[9:12].decode()
        self.statuses[status] += 1
        if status in ("200", "201"):
            self.accepted.append(seconds)
            self._add_intent(request.reference, status, body)
        else:
            self.refused.append(seconds)
            if not _is_retryable_error(head, body) and len(self.malformed) < 5:
                self.malformed.append((head + b"\n\n" + body)[:500].decode(errors="replace"))

    def _add_intent(self, reference: str, status: str, body: bytes) -> None:
        after = body.partition(b'"uuid":"')[2]
        uuid = after[:36].decode()
        if status == "200":
            self.found.append((reference, uuid))
        elif reference in self.created:
            self.created_twice.append(reference)
        else:
            self.created[reference] = uuid


def _is_retryable_error(head: bytes, body: bytes) -> bool:
    """Say whether it is JSON with a message, and says when to try again."""
    lines = head.lower().split(b"\r\n")
    headers = dict(line.split(b": ", 1) for line in lines[1:])
    try:
        answer = msgspec.json.decode(body, type=dict[str, object])
    except msgspec.DecodeError:
        return False
    return (
        headers.get(b"content-type") == b"application/json"
        and headers.get(b"retry-after", b"").isdigit()
        and bool(headers.get(b"x-request-id"))
        and isinstance(answer.get("message"), str)
    )


class _OpenLoop:
    def __init__(self, plan: OpenLoopPlan, poller: select.epoll) -> None:
        self._plan = plan
        self._poller = poller
        lines = [f"POST {plan.path} HTTP/1.1", *(f"{name}: {value}" for name, value in plan.headers.items())]
        self._head = "\r\n".join(lines)
        self._lines: dict[int, _Line] = {}
        self._idle: list[_Line] = []
        self._waiting: deque[_Request] = deque()
        self._sent = 0
        self._most = 0
        self._late_s = 0.0
        self._answered_at = perf_counter()
        self._tally = _Tally()

    def run(self) -> OpenLoopResult:
        started = perf_counter()
        planned = int(self._plan.rate * self._plan.seconds)
        while self._sent < planned:
            while self._sent < min(planned, (perf_counter() - started) * self._plan.rate):
                self._waiting.append(self._next_request(started + self._sent / self._plan.rate))
                self._sent += 1
            self._step()
        while self._waiting or len(self._idle) < len(self._lines):
            if perf_counter() > self._answered_at + _STALLED_S:
                break
            self._step()
        tally = self._tally
        unanswered = len(self._waiting) + len(self._lines) - len(self._idle)
        return OpenLoopResult(
            self._sent,
            dict(tally.statuses) | ({"none": unanswered} if unanswered else {}),
            Latency.of(tally.accepted),
            Latency.of(tally.refused),
            1000 * self._late_s,
            self._most,
            tally.malformed,
            tally.created,
            tally.found,
            tally.created_twice,
        )

    def _next_request(self, due_at: float) -> _Request:
        number = self._sent - (self._sent % REPEAT_EVERY == REPEAT_EVERY - 1)
        reference = f"{self._plan.prefix}{number}"
        body = f'{{"merchant_reference": "{reference}", "amount": 25000, "currency": "LYD"}}'
        return _Request(
            reference, f"{self._head}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode(), due_at
        )

    def _step(self) -> None:
        while self._waiting and (self._idle or len(self._lines) < self._plan.connections):
            self._start(self._waiting.popleft())
        for number, events in self._poller.poll(_TICK_S):
            line = self._lines[number]
            if events & select.EPOLLOUT:
                self._send(line)
            else:
                self._receive(line)

    def _start(self, request: _Request) -> None:
        """Send it on a free connection, or as soon as a new one is open: connecting counts."""
        request.sent_at = perf_counter()
        self._late_s = max(self._late_s, request.sent_at - request.due_at)
        if self._idle:
            line = self._idle.pop()
            line.request = request
            self._send(line)
            return
        line = _Line(("127.0.0.1", self._plan.port))
        line.request = request
        self._lines[line.number] = line
        self._most = max(self._most, len(self._lines))
        self._poller.register(line.number, select.EPOLLOUT)

    def _send(self, line: _Line) -> None:
        """Send the whole request: it is far smaller than the kernel's buffer."""
        assert line.request is not None
        try:
            line.socket.sendall(line.request.text)
        except OSError:
            self._close(line)
        else:
            self._poller.modify(line.number, select.EPOLLIN)

    def _receive(self, line: _Line) -> None:
        try:
            chunk = line.socket.recv(65536)
        except OSError:
            chunk = b""
        if not chunk:
            self._close(line)
            return
        line.received += chunk
        head, blank, body = line.received.partition(b"\r\n\r\n")
        if not blank or len(body) < int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            return
        assert line.request is not None
        self._answered_at = perf_counter()
        self._tally.add(line.request, head, body)
        line.received, line.request = b"", None
        self._idle.append(line)

    def _close(self, line: _Line) -> None:
        if line.request is None:
            self._idle.remove(line)
        else:
            self._tally.statuses["closed"] += 1
        self._poller.unregister(line.number)
        del self._lines[line.number]
        line.socket.close()


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=OpenLoopPlan)
    with select.epoll() as poller:
        sys.stdout.buffer.write(msgspec.json.encode(_OpenLoop(plan, poller).run()))


if __name__ == "__main__":
    main()
