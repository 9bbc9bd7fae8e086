"""The merchants' webhook receivers: one server on loopback for all applications, each with a behaviour of its own."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from random import Random
from time import monotonic, time

from chaos.history import WebhookReceived
from chaos.load.receiver_behaviour import Behaviour
from chaos.load.recorder import Recorder

_HANG_S = 12.0
"""The connection of a request that is not answered is closed then. The product waits for 10 s."""
_SLOW_S = (3.0, 9.0)
_REASONS = {Behaviour.OK: "OK", Behaviour.ERROR: "Error", Behaviour.UNAVAILABLE: "Unavailable"}

BehaviourOverTime = Callable[[int, float, bool], Behaviour]
"""From the number of a receiver, the seconds since the start, and whether it lives."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """A webhook that was received. The fields are None if its body does not have them."""

    application: str
    delivery: str | None
    event: str | None
    uuid: str | None


@dataclass(slots=True)
class Receiver:
    """The receiver of one application."""

    number: int
    lives: bool
    application: str = ""


class Receivers:
    """Listens on 127.0.0.1. The path of a webhook URL is /{number of the receiver}/{version of the URL}."""

    def __init__(
        self,
        behaviour: BehaviourOverTime,
        recorder: Recorder,
        on_receipt: Callable[[Receipt], None],
        random: Random,
        base_url: str | None = None,
    ) -> None:
        self._behaviour_over_time = behaviour
        self._recorder = recorder
        self._on_receipt = on_receipt
        self._base_url = base_url
        self._receivers: dict[int, Receiver] = {}
        self._numbers = count(1)
        self._random = random
        self._began = monotonic()
        self._has_recovered = False
        self._server: asyncio.Server | None = None
        self._open: set[_Connection] = set()

    async def start(self, port: int = 0) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port)
        self._began = monotonic()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def add(self, *, lives: bool) -> Receiver:
        """Add a receiver. Its application is created afterwards, with its URL, and set by the caller."""
        receiver = Receiver(len(self._receivers), lives)
        self._receivers[receiver.number] = receiver
        return receiver

    def url(self, receiver: Receiver, version: int) -> str:
        return f"{self._base()}/{receiver.number}/{version}"

    def recover(self) -> None:
        """Let all receivers that live answer 200 from now on."""
        self._has_recovered = True

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self._open):
            connection.abort()

    def _base(self) -> str:
        return self._base_url or f"http://127.0.0.1:{self.port}"

    def _find(self, path: str) -> Receiver | None:
        number = path.strip("/").partition("/")[0]
        return self._receivers.get(int(number)) if number.isdecimal() else None

    def _behaviour(self, receiver: Receiver) -> Behaviour:
        if self._has_recovered and receiver.lives:
            return Behaviour.OK
        return self._behaviour_over_time(receiver.number, monotonic() - self._began, receiver.lives)

    def decide(self, path: str) -> Behaviour:
        """Return what to do with a request to this path. Paths that we gave to nobody are errors."""
        receiver = self._find(path)
        return Behaviour.ERROR if receiver is None else self._behaviour(receiver)

    def record(
        self, path: str, headers: dict[str, str], body: bytes, connection: int, behaviour: Behaviour
    ) -> None:
        """Write a complete request into the history, before it is answered."""
        receiver = self._find(path)
        application = "" if receiver is None else receiver.application
        text = body.decode("latin-1")
        self._recorder.add(
            WebhookReceived(
                at=time(),
                application=application,
                url=self._base() + path,
                connection=connection,
                signature=headers.get("service-signature"),
                body=text,
                answer=behaviour.recorded,
            )
        )
        self._on_receipt(_parse_receipt(application, text))

    def opened(self, connection: "_Connection") -> int:
        self._open.add(connection)
        return next(self._numbers)

    def closed(self, connection: "_Connection") -> None:
        self._open.discard(connection)

    def slow_pause(self) -> float:
        return self._random.uniform(*_SLOW_S)

    def redirect_target(self) -> str:
        """Return a URL that no webhook may come to."""
        return f"{self._base()}/redirected/0"


def _parse_receipt(application: str, body: str) -> Receipt:
    try:
        fields = json.loads(body)
        return Receipt(application, fields["id"], fields["event"], fields["data"]["uuid"])
    except (ValueError, KeyError, TypeError):
        return Receipt(application, None, None, None)


class _Connection(asyncio.Protocol):
    """One TCP connection, with one request after the other."""

    def __init__(self, receivers: Receivers) -> None:
        self._receivers = receivers
        self._transport: asyncio.Transport | None = None
        self._number = 0
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._number = self._receivers.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  the signature of asyncio
        self._receivers.closed(self)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._unread += data
        head, blank, body = self._unread.partition(b"\r\n\r\n")
        if not blank:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        path = first.partition(" ")[2].partition(" ")[0]
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        length = int(headers.get("content-length", "0"))
        behaviour = self._receivers.decide(path)
        is_complete = len(body) >= length
        if is_complete:
            self._unread = body[length:]
            self._receivers.record(path, headers, body[:length], self._number, behaviour)
        if is_complete or behaviour is Behaviour.CLOSE_UNREAD:
            self._act(behaviour)

    def _act(self, behaviour: Behaviour) -> None:
        loop = asyncio.get_running_loop()
        match behaviour:
            case Behaviour.HANG:
                loop.call_later(_HANG_S, self.abort)
            case Behaviour.SLOW:
                loop.call_later(self._receivers.slow_pause(), self._answer, Behaviour.OK)
            case Behaviour.CLOSE | Behaviour.CLOSE_UNREAD:
                self.abort()
            case Behaviour.GARBAGE:
                self._write(b"\x00\x15 this is not HTTP\r\n\r\n")
                self._close()
            case _:
                self._answer(behaviour)

    def _answer(self, behaviour: Behaviour) -> None:
        head = f"HTTP/1.1 {behaviour.value} {_REASONS.get(behaviour, 'Found')}\r\nContent-Length: 2\r\n"
        if behaviour is Behaviour.REDIRECT:
            head += f"Location: {self._receivers.redirect_target()}\r\n"
        self._write(f"{head}\r\nok".encode())

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
