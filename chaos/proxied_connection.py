"""One proxied connection of `chaos.proxy`: the client's end and the target's, and what a fault does to both."""

import asyncio
import contextlib
import socket
import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

HOST = "127.0.0.1"
_CONNECT_SECONDS = 3.0
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
# A request of Kafka begins with its size, API key, version and correlation id, then the client's name with its length.
_KAFKA_HEADER = struct.Struct(">ihhih")


class NetworkFault(StrEnum):
    CUT = "cut"
    """New connections are refused, existing ones are closed."""
    DELAY = "delay"
    """Bytes arrive later, in both directions."""
    HANG = "hang"
    """Nothing arrives. Afterwards everything does, as after a lost route."""
    HALF = "half"
    """Half of the next bytes arrive, and then nothing. Afterwards these connections are reset."""
    RESET = "reset"
    """Existing connections are reset, and new ones as soon as the client sends something."""


@dataclass(frozen=True)
class Rule:
    fault: NetworkFault
    client: str | None = None
    """None: all clients."""
    delay_ms: int = 0


class ConnectionOwner(Protocol):
    """The link of a connection."""

    pairs: set["Pair"]

    @property
    def names_clients(self) -> bool: ...

    def rule_of(self, client: str | None) -> Rule | None: ...

    def ports_in_turn(self) -> Iterator[int]: ...


def read_client_name(data: bytes) -> str | None:
    """Return the client id in the first bytes of a Kafka connection, or None if they are not a request with one."""
    if len(data) < _KAFKA_HEADER.size:
        return None
    length = _KAFKA_HEADER.unpack_from(data)[4]
    name = data[_KAFKA_HEADER.size : _KAFKA_HEADER.size + max(length, 0)]
    return name.decode(errors="replace") if length > 0 else None


class _Side(asyncio.Protocol):
    """One end of a proxied connection: what it reads goes to the other end."""

    transport: asyncio.Transport
    other: "_Side"

    def __init__(self, pair: "Pair") -> None:
        self._pair = pair
        self._queue: deque[tuple[float, bytes]] = deque()
        """What is to be written to the other end, and when. Empty bytes mean the end of the stream."""
        self._timer: asyncio.TimerHandle | None = None
        self.has_ended = False
        """Whether the end of its stream was passed on."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if self is self._pair.client:
            self._pair.connect()

    def data_received(self, data: bytes) -> None:
        rule = self._pair.rule_for(self, data)
        if self._pair.is_closed or self._pair.swallows:
            return
        if rule is not None and rule.fault is NetworkFault.HALF:
            self._pair.swallows = True
            data = data[: len(data) // 2]
        self._send_later(data, rule)

    def eof_received(self) -> bool:
        if not self._pair.swallows:
            self._send_later(b"", self._pair.rule)
        return True

    def _send_later(self, data: bytes, rule: Rule | None) -> None:
        delay_s = rule.delay_ms / 1000 if rule is not None and rule.fault is NetworkFault.DELAY else 0
        self._queue.append((asyncio.get_running_loop().time() + delay_s, data))
        self.flush()

    def flush(self) -> None:
        """Write what is due, unless the connection hangs."""
        loop = asyncio.get_running_loop()
        while self._queue and not self._pair.hangs and self._queue[0][0] <= loop.time() + 0.001:
            data = self._queue.popleft()[1]
            if data:
                self.other.transport.write(data)
            else:
                self._pass_on_end()
        if self._queue and self._timer is None and not self._pair.hangs:
            self._timer = loop.call_at(self._queue[0][0], self._on_timer)

    def _pass_on_end(self) -> None:
        """End the stream to the other end; close the connection if that has ended its own."""
        self.has_ended = True
        if self.other.has_ended:
            self._pair.close(reset=False)
        else:
            with contextlib.suppress(OSError, RuntimeError):
                self.other.transport.write_eof()

    def _on_timer(self) -> None:
        self._timer = None
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._pair.swallows and not self._pair.hangs and not self._pair.is_closed:
            for _, data in self._queue:
                self.other.transport.write(data)
        self._pair.close(reset=exc is not None)

    def pause_writing(self) -> None:
        self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if not self._pair.hangs:
            self.other.transport.resume_reading()


class Pair:
    """A connection of a client and the one to its target."""

    def __init__(self, link: ConnectionOwner) -> None:
        self._link = link
        self.client, self.target = _Side(self), _Side(self)
        self.client.other, self.target.other = self.target, self.client
        self.name: str | None = None
        self.is_open = self.is_closed = self.swallows = self.hangs = False
        self._is_named = not link.names_clients

    @property
    def rule(self) -> Rule | None:
        return self._link.rule_of(self.name)

    def connect(self) -> None:
        self.client.transport.pause_reading()
        self._task = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        for port in self._link.ports_in_turn():
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await loop.create_connection(lambda: self.target, HOST, port)
            except OSError:
                continue
            if self.is_closed:
                self.target.transport.abort()
                return
            self.is_open = True
            self.client.transport.resume_reading()
            self.obey()
            return
        self.close(reset=True)

    def rule_for(self, side: _Side, data: bytes) -> Rule | None:
        """Return the rule for bytes that `side` has read. Learns the client's name, and resets the connection if so."""
        if not self._is_named and side is self.client:
            self.name, self._is_named = read_client_name(data), True
            self.obey()
        rule = self.rule
        if rule is not None and rule.fault is NetworkFault.RESET:
            self.close(reset=True)
        return rule

    def obey(self) -> None:
        """Follow the present rule: called when it changes, and when the connection is new."""
        rule = self.rule
        fault = None if rule is None else rule.fault
        if self.swallows and fault is not NetworkFault.HALF:
            self.close(reset=True)
        elif fault is NetworkFault.CUT:
            self.close(reset=False)
        elif self.is_open and not self.is_closed:
            self._set_hanging(fault is NetworkFault.HANG)

    def _set_hanging(self, hangs: bool) -> None:
        if hangs == self.hangs:
            return
        self.hangs = hangs
        for side in (self.client, self.target):
            if hangs:
                side.transport.pause_reading()
            else:
                side.transport.resume_reading()
                side.flush()

    def close(self, *, reset: bool) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._link.pairs.discard(self)
        for side in (self.client, self.target):
            transport: asyncio.Transport | None = getattr(side, "transport", None)
            if transport is None:
                continue
            if reset or self.swallows:
                end = transport.get_extra_info("socket")
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                transport.abort()
            else:
                transport.close()
