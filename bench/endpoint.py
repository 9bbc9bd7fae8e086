"""A merchant's webhook endpoint for benchmarks: fulfils §6.5 and records what it received when.

A plain asyncio server in its own process, controlled through pipes. It checks the signature of the raw bytes in
constant time, responds, and parses the id. On its second port it never responds.
"""

import asyncio
import gc
import hmac
import json
import sys
from dataclasses import dataclass
from time import time

import msgspec

from shared.platform.uuids import uuid7_timestamp

COUNT = b"count\n"
TAKE = b"take\n"
EXPECT = b"expect "

_OK_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_UNAUTHORIZED_RESPONSE = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
_BACKLOG = 4096


@dataclass(frozen=True, slots=True)
class Receipts:
    """The requests that were acknowledged since the last `TAKE`, with duplicates."""

    ids: list[str]
    at: list[float]
    """The value of `time.time()` when each request had been read."""

    def latencies_ms(self, after_s: float = 0) -> list[float]:
        """Return the time from each event to its receipt, for events at least `after_s` after the first."""
        made = [uuid7_timestamp(event_id) for event_id in self.ids]
        since = min(made) + after_s
        return [(at - then) * 1000 for then, at in zip(made, self.at, strict=True) if then >= since]

    def check_once_each(self, count: int) -> None:
        assert len(self.ids) == len(set(self.ids)) == count, f"{len(self.ids)} receipts, not {count}"


class Endpoint:
    def __init__(self) -> None:
        self._keys: dict[bytes, hmac.HMAC] = {}
        """The signing key of each path."""
        self._ids: list[str] = []
        self._at: list[float] = []

    async def run(self) -> None:
        servers = [
            await asyncio.start_server(serve, "127.0.0.1", 0, backlog=_BACKLOG)
            for serve in (self._acknowledge, self._never_respond)
        ]
        _send_reply([server.sockets[0].getsockname()[1] for server in servers])
        commands = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(commands), sys.stdin
        )
        while command := await commands.readline():  # until the pipe is closed
            _send_reply(self._handle(command))

    async def _acknowledge(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                request_line, *lines = head[:-4].split(b"\r\n")
                headers = dict(line.lower().split(b": ", 1) for line in lines)
                body = await reader.readexactly(int(headers[b"content-length"]))
                at = time()
                if not self._is_signed(request_line.split(b" ")[1], body, headers[b"service-signature"]):
                    writer.write(_UNAUTHORIZED_RESPONSE)
                    continue
                writer.write(_OK_RESPONSE)
                self._at.append(at)
                self._ids.append(json.loads(body)["id"])
        except (asyncio.IncompleteReadError, ConnectionError):  # the client is gone
            writer.close()

    async def _never_respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):
            pass
        writer.close()

    def _is_signed(self, path: bytes, body: bytes, signature: bytes) -> bool:
        signing = self._keys[path].copy()
        signing.update(body)
        return hmac.compare_digest(signing.hexdigest().encode(), signature)

    def _handle(self, command: bytes) -> object:
        if command == TAKE:
            taken = Receipts(self._ids, self._at)
            self._ids, self._at = [], []
            return taken
        if command.startswith(EXPECT):
            _, path, secret = command.split()
            self._keys[path] = hmac.new(secret, digestmod="sha256")
        return len(self._ids)


def _send_reply(reply: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(reply) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    gc.disable()  # the collector would scan ever more receipts, none of them garbage
    asyncio.run(Endpoint().run())
