"""The HTTP client of the load says when there was no complete answer, and never uses a broken connection again."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from chaos.load.http_client import ConnectionPool, HttpAddress, HttpConnection, NoResponseError
from tests.event_loops import run_async

Test = Callable[[HttpAddress], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class _ScriptedServer:
    """Answers the requests of all connections with these bytes, one after the other. None closes the connection."""

    def __init__(self, *answers: bytes | None) -> None:
        self._answers = list(answers)
        self.connections = 0
        self.heads: list[str] = []

    def run(self, test: Test) -> None:
        async def main() -> None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            await test(HttpAddress("127.0.0.1", server.sockets[0].getsockname()[1], "/base"))
            server.close()
            await asyncio.sleep(0)

        run_async(main())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self._answers:
                self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                answer = self._answers.pop(0)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
            if self._answers == []:
                await reader.read(1)  # the client closes
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()


def test_connection_is_kept_for_the_next_request() -> None:
    server = _ScriptedServer(OK, OK)

    async def test(address: HttpAddress) -> None:
        pool = ConnectionPool(address)
        for path in ("/a", "/b"):
            response = await pool.request("GET", path, {"X-Test": "yes"})
            assert (response.status, response.body) == (200, b"ok")
        pool.close()

    server.run(test)
    assert server.connections == 1
    assert server.heads[1].startswith("GET /base/b HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Test: yes\r\n")


def test_chunked_body_is_joined() -> None:
    server = _ScriptedServer(
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3;x=y\r\ncde\r\n0\r\n\r\n"
    )

    async def test(address: HttpAddress) -> None:
        connection = HttpConnection(address)
        response = await connection.request("POST", "/", body=b"x")
        assert (response.status, response.body) == (201, b"abcde")
        connection.close()

    server.run(test)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"\x00\x15 nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
    ],
    ids=["closed", "half a body", "half a head", "not HTTP", "no length"],
)
def test_incomplete_answer_is_no_response_and_the_next_request_uses_a_new_connection(
    answer: bytes | None,
) -> None:
    server = _ScriptedServer(answer, None, OK) if answer is None else _ScriptedServer(answer, OK)

    async def test(address: HttpAddress) -> None:
        connection = HttpConnection(address)
        with pytest.raises(NoResponseError):
            await connection.request("POST", "/", body=b"x", timeout_s=0.3)
        if answer is None:
            with pytest.raises(NoResponseError):
                await connection.request("GET", "/")
        assert (await connection.request("GET", "/")).status == 200
        connection.close()

    server.run(test)
    assert server.connections == (3 if answer is None else 2)


def test_connection_that_the_server_closed_is_not_used_again() -> None:
    server = _ScriptedServer(OK, None, OK)

    async def test(address: HttpAddress) -> None:
        pool = ConnectionPool(address)
        assert (await pool.request("GET", "/")).status == 200
        with pytest.raises(NoResponseError):
            await pool.request("GET", "/")
        assert (await pool.request("GET", "/")).status == 200
        pool.close()

    server.run(test)
    assert server.connections == 2


def test_refused_connection_is_no_response() -> None:
    async def test(address: HttpAddress) -> None:
        with pytest.raises(NoResponseError, match="Refused"):
            await HttpConnection(HttpAddress("127.0.0.1", 1, "")).request("GET", "/")

    _ScriptedServer().run(test)


def test_given_up_request_is_sent_and_its_connection_closed() -> None:
    server = _ScriptedServer(OK)

    async def test(address: HttpAddress) -> None:
        connection = HttpConnection(address)
        await connection.send_and_close("POST", "/pay", {}, b"x", after_s=0.05)
        async with asyncio.timeout(2):
            while not server.heads:
                await asyncio.sleep(0.01)

    server.run(test)
    assert server.heads[0].startswith("POST /base/pay ")
