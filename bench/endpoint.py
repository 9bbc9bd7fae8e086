"""A merchant's endpoint for measurements: does what §6.5 obliges receivers to, and remembers what came when.

A plain asyncio server. It checks each signature over the bytes that came, in constant time, answers, and reads the id;
at its other port it never answers. A process of its own, which is asked through its pipes.
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

_YES = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_NO = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
_BACKLOG = 4096


@dataclass(frozen=True, slots=True)
class Receipts:
    """What was answered since somebody last took them, repeats too."""

    ids: list[str]
    at: list[float]
    """As `time.time()`, when the request had been read."""

    def latencies_ms(self, after_s: float = 0) -> list[float]:
        """From each event to its receipt; of those that happened so long after the first."""
        made = [uuid7_timestamp(event_id) for event_id in self.ids]
        since = min(made) + after_s
        return [(at - then) * 1000 for then, at in zip(made, self.at, strict=True) if then >= since]

    def check_once_each(self, count: int) -> None:
        assert len(self.ids) == len(set(self.ids)) == count, f"{len(self.ids)} receipts, not {count}"


class Endpoint:
    def __init__(self) -> None:
        self._keys: dict[bytes, hmac.HMAC] = {}
        """Of the secrets that webhooks to a path are signed with."""
        self._ids: list[str] = []
        self._at: list[float] = []

    async def run(self) -> None:
        servers = [
            await asyncio.start_server(serve, "127.0.0.1", 0, backlog=_BACKLOG)
            for serve in (self._answer_each, self._answer_nobody)
        ]
        _say([server.sockets[0].getsockname()[1] for server in servers])
        questions = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(questions), sys.stdin
        )
        while question := await questions.readline():  # until nobody asks any more
            _say(self._told(question))

    async def _answer_each(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                request_line, *lines = head[:-4].split(b"\r\n")
                headers = dict(line.lower().split(b": ", 1) for line in lines)
                body = await reader.readexactly(int(headers[b"content-length"]))
                at = time()
                if not self._is_signed(request_line.split(b" ")[1], body, headers[b"service-signature"]):
                    writer.write(_NO)
                    continue
                writer.write(_YES)
                self._at.append(at)
                self._ids.append(json.loads(body)["id"])
        except (asyncio.IncompleteReadError, ConnectionError):  # whoever asked is gone
            writer.close()

    async def _answer_nobody(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):
            pass
        writer.close()

    def _is_signed(self, path: bytes, body: bytes, signature: bytes) -> bool:
        signing = self._keys[path].copy()
        signing.update(body)
        return hmac.compare_digest(signing.hexdigest().encode(), signature)

    def _told(self, question: bytes) -> object:
        if question == TAKE:
            taken = Receipts(self._ids, self._at)
            self._ids, self._at = [], []
            return taken
        if question.startswith(EXPECT):
            _, path, secret = question.split()
            self._keys[path] = hmac.new(secret, digestmod="sha256")
        return len(self._ids)


def _say(answer: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    gc.disable()  # there is ever more to look through, and none of it is garbage
    asyncio.run(Endpoint().run())
