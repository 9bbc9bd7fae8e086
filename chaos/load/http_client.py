"""A small HTTP/1.1 client for asyncio: cheap, and honest about answers that never came.

It is written by hand because it shares two cores with the whole stack: `requests` takes about ten times as much
processor time for a request, and the client libraries for asyncio are not among our dependencies.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import urlsplit

TIMEOUT_S = 10.0
_MAX_HEAD_BYTES = 64 * 1024
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class NoResponseError(Exception):
    """There was no complete response: the request may have been carried out or not."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    status: int
    headers: tuple[tuple[str, str], ...]
    """Names in lower case, in the order they came."""
    body: bytes = field(repr=False)

    def header(self, name: str) -> str | None:
        return next((value for known, value in self.headers if known == name), None)


@dataclass(frozen=True, slots=True)
class HttpAddress:
    host: str
    port: int
    path: str
    """Put before the path of each request, without a slash at its end."""

    @classmethod
    def parse(cls, url: str) -> "HttpAddress":
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname is None:
            raise ValueError(f"{url} is not an http address")
        return cls(parts.hostname, parts.port or 80, parts.path.rstrip("/"))


class HttpConnection:
    """A connection that is opened when needed and kept open. For one request at a time."""

    def __init__(self, address: HttpAddress) -> None:
        self._address = address
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] = _NO_HEADERS,
        body: bytes | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> HttpResponse:
        """Send a request and return its response. Raises NoResponseError if it is not complete in time."""
        try:
            async with asyncio.timeout(timeout_s):
                reader = await self._send(method, path, headers, body)
                response, is_kept = await _read_response(reader)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            self.close()
            raise NoResponseError(f"{type(error).__name__}: {error}") from None
        except BaseException:  # cancelled half-way: the connection cannot be used again
            self.close()
            raise
        if not is_kept:
            self.close()
        return response

    async def send_and_close(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, *, after_s: float
    ) -> None:
        """Send a request and close the connection so long afterwards, whatever comes. Raises NoResponseError if it
        could not be sent."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._send(method, path, headers, body)
                await asyncio.sleep(after_s)
        except OSError as error:
            raise NoResponseError(f"{type(error).__name__}: {error}") from None
        finally:
            self.close()

    async def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> asyncio.StreamReader:
        if self._writer is None or self._reader is None or self._writer.is_closing() or self._reader.at_eof():
            self.close()
            self._reader, self._writer = await asyncio.open_connection(
                self._address.host, self._address.port, limit=_MAX_HEAD_BYTES
            )
        lines = [f"{method} {self._address.path}{path} HTTP/1.1", f"Host: {self._address.host}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b""))
        await self._writer.drain()
        return self._reader

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None


async def _read_response(reader: asyncio.StreamReader) -> tuple[HttpResponse, bool]:
    """Return the response, and whether the connection can be used for another request."""
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    protocol, status, *_ = first.split(" ")
    if not protocol.startswith("HTTP/1."):
        raise ValueError("not a response")
    pairs = (line.partition(":") for line in lines)
    headers = tuple((name.strip().lower(), value.strip()) for name, _, value in pairs)
    known = dict(headers)
    is_kept = protocol != "HTTP/1.0" and known.get("connection", "").lower() != "close"
    if known.get("transfer-encoding", "").lower() == "chunked":
        body = await _read_chunks(reader)
    elif "content-length" in known:
        body = await reader.readexactly(int(known["content-length"]))
    else:
        body, is_kept = await reader.read(), False
    return HttpResponse(int(status), headers, body), is_kept


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    chunks = []
    while size := int((await reader.readline()).partition(b";")[0], 16):
        chunks.append(await reader.readexactly(size))
        await reader.readexactly(2)
    while (await reader.readline()).strip():
        pass  # trailers
    return b"".join(chunks)


class ConnectionPool:
    """Connections to one address that several callers share, as in a merchant's server."""

    def __init__(self, address: HttpAddress, max_idle: int = 8) -> None:
        self._address = address
        self._idle: deque[HttpConnection] = deque(maxlen=max_idle)

    async def request(
        self, method: str, path: str, headers: Mapping[str, str] = _NO_HEADERS, body: bytes | None = None
    ) -> HttpResponse:
        """Like HttpConnection.request. A connection that fails is not used again."""
        connection = self._idle.pop() if self._idle else HttpConnection(self._address)
        response = await connection.request(method, path, headers, body)
        if len(self._idle) == self._idle.maxlen:
            connection.close()
        else:
            self._idle.append(connection)
        return response

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
