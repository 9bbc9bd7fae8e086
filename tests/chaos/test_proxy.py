"""The proxies of `make chaos`, with real sockets."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Thread
from time import monotonic

import pytest

from chaos.proxied_connection import NetworkFault, Rule, read_client_name
from chaos.proxy import Link, ProxyServer
from stack.ports import find_free_ports
from tests.event_loops import run_async


class EchoServer:
    """Answers what it receives with its own number before it. Threads, so that it is independent of the proxy."""

    def __init__(self, number: int) -> None:
        self._mark = str(number).encode()
        self.received = bytearray()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                Thread(target=self._echo, args=(self._socket.accept()[0],), daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while data := connection.recv(65536):
                self.received += data
                connection.sendall(self._mark + data)

    def stop(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def run_with_proxy(
    check: Callable[[ProxyServer, int], Awaitable[None]], *targets: int, names_clients: bool = False
) -> None:
    async def run() -> None:
        (port,) = find_free_ports(1)
        proxy = ProxyServer([Link("link", port, targets, names_clients)])
        await proxy.start()
        try:
            async with asyncio.timeout(20):
                await check(proxy, port)
        finally:
            while _opened:
                _opened.pop().close()
            for _ in range(3):  # what the loop is accepting appears in its next turns
                proxy.stop()
                await asyncio.sleep(0.02)

    run_async(run())


_opened: list[asyncio.StreamWriter] = []


async def open_client(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    _opened.append(writer)
    return reader, writer


async def is_silent(reader: asyncio.StreamReader, seconds: float = 0.3) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await reader.read(1)
    except TimeoutError:
        return True
    return False


def kafka_request(client: str) -> bytes:
    body = struct.pack(">hhih", 18, 3, 1, len(client)) + client.encode() + b"more"
    return struct.pack(">i", len(body)) + body


def test_bytes_pass_in_both_directions() -> None:
    """All bytes arrive, in order, also more than the buffers hold, and so does the end of the stream."""

    async def check(_proxy: ProxyServer, port: int) -> None:
        reader, writer = await open_client(port)
        sent = bytes(range(256)) * 8192
        writer.write(sent)
        writer.write_eof()
        received = await reader.read()
        assert received.replace(b"1", b"") == sent.replace(b"1", b"")

    run_with_proxy(check, EchoServer(1).port)


def test_a_connection_that_both_ends_have_closed_is_forgotten() -> None:
    """Whoever closes first. Otherwise each connection would keep two open files."""

    async def check(proxy: ProxyServer, port: int) -> None:
        for closes_first in (True, False):
            reader, writer = await open_client(port)
            writer.write(b"x")
            await reader.readexactly(2)
            assert proxy.connections("link") == 1
            if closes_first:
                writer.close()
            else:
                writer.write_eof()
                await reader.read()
            while proxy.connections("link"):
                await asyncio.sleep(0.01)

    run_with_proxy(check, EchoServer(1).port)


def test_connections_go_to_the_targets_in_turn_and_past_one_that_refuses() -> None:
    first, second = EchoServer(1), EchoServer(2)

    async def answer(port: int) -> bytes:
        reader, writer = await open_client(port)
        writer.write(b"x")
        try:
            return await reader.readexactly(2)
        finally:
            writer.close()

    async def check(_proxy: ProxyServer, port: int) -> None:
        assert {await answer(port), await answer(port)} == {b"1x", b"2x"}
        first.stop()
        assert [await answer(port) for _ in range(4)] == [b"2x"] * 4

    run_with_proxy(check, first.port, second.port)


def test_cut_closes_connections_and_refuses_new_ones_until_it_is_healed() -> None:
    async def check(proxy: ProxyServer, port: int) -> None:
        reader, writer = await open_client(port)
        writer.write(b"x")
        await reader.readexactly(2)
        await proxy.apply("link", Rule(NetworkFault.CUT))
        assert await reader.read() == b""
        with pytest.raises(ConnectionRefusedError):
            await open_client(port)
        await proxy.heal("link")
        reader, writer = await open_client(port)
        writer.write(b"y")
        assert await reader.readexactly(2) == b"1y"

    run_with_proxy(check, EchoServer(1).port)


def test_delay_holds_bytes_back_in_each_direction_and_keeps_their_order() -> None:
    async def check(proxy: ProxyServer, port: int) -> None:
        reader, writer = await open_client(port)
        await proxy.apply("link", Rule(NetworkFault.DELAY, delay_ms=200))
        began = monotonic()
        writer.write(b"x")
        assert await reader.readexactly(2) == b"1x"
        assert monotonic() - began >= 0.4
        writer.write(b"slow")
        await asyncio.sleep(0.05)
        await proxy.heal("link")
        writer.write(b"quick")
        assert (await reader.readuntil(b"quick")).replace(b"1", b"") == b"slowquick"

    run_with_proxy(check, EchoServer(1).port)


def test_hang_delivers_everything_once_it_is_healed() -> None:
    async def check(proxy: ProxyServer, port: int) -> None:
        old_reader, old_writer = await open_client(port)
        old_writer.write(b"a")
        await old_reader.readexactly(2)
        await proxy.apply("link", Rule(NetworkFault.HANG))
        new_reader, new_writer = await open_client(port)
        for writer in (old_writer, new_writer):
            writer.write(b"x")
        assert await is_silent(old_reader)
        assert await is_silent(new_reader)
        await proxy.heal("link")
        assert await old_reader.readexactly(2) == b"1x"
        assert await new_reader.readexactly(2) == b"1x"

    run_with_proxy(check, EchoServer(1).port)


def test_half_delivers_half_of_the_bytes_and_resets_the_connection_when_it_is_healed() -> None:
    server = EchoServer(1)

    async def check(proxy: ProxyServer, port: int) -> None:
        reader, writer = await open_client(port)
        quiet_reader, quiet_writer = await open_client(port)
        await proxy.apply("link", Rule(NetworkFault.HALF))
        writer.write(b"12345678")
        await asyncio.sleep(0.1)
        writer.write(b"lost")
        assert await is_silent(reader)
        assert server.received == b"1234"
        await proxy.heal("link")
        with pytest.raises(ConnectionResetError):
            await reader.read()
        quiet_writer.write(b"z")
        assert await quiet_reader.readexactly(2) == b"1z"

    run_with_proxy(check, server.port)


def test_reset_ends_connections_with_an_error() -> None:
    async def check(proxy: ProxyServer, port: int) -> None:
        reader, writer = await open_client(port)
        writer.write(b"a")
        await reader.readexactly(2)
        await proxy.apply("link", Rule(NetworkFault.RESET))
        with pytest.raises(ConnectionResetError):
            await reader.read()
        reader, writer = await open_client(port)
        writer.write(b"x")
        with pytest.raises(ConnectionResetError):
            await reader.read()

    run_with_proxy(check, EchoServer(1).port)


def test_a_client_is_reset_if_no_target_accepts() -> None:
    async def check(_proxy: ProxyServer, port: int) -> None:
        reader, _ = await open_client(port)
        with pytest.raises(ConnectionResetError):
            await reader.read()

    run_with_proxy(check, *find_free_ports(1))


def test_a_fault_of_one_client_leaves_the_others_alone() -> None:
    """Kafka's clients tell their names in their first request."""

    async def check(proxy: ProxyServer, port: int) -> None:
        clients = {name: await open_client(port) for name in ("webhooks-1", "webhooks-2")}
        for name, (reader, writer) in clients.items():
            writer.write(kafka_request(name))
            assert await reader.readuntil(b"more")
        await proxy.apply("link", Rule(NetworkFault.HANG, "webhooks-2"))
        late_reader, late_writer = await open_client(port)
        late_writer.write(kafka_request("webhooks-2-producer"))
        for _, writer in clients.values():
            writer.write(b"x")
        assert await clients["webhooks-1"][0].readexactly(2) == b"1x"
        assert await is_silent(clients["webhooks-2"][0])
        assert await is_silent(late_reader)
        await proxy.heal("link", "webhooks-2")
        assert await clients["webhooks-2"][0].readexactly(2) == b"1x"
        assert await late_reader.readuntil(b"more")
        await proxy.apply("link", Rule(NetworkFault.CUT, "webhooks-1"))
        assert await clients["webhooks-1"][0].read() == b""
        late_writer.write(b"y")
        assert await late_reader.readexactly(2) == b"1y"

    run_with_proxy(check, EchoServer(1).port, names_clients=True)


def test_the_name_of_a_client_is_read_only_from_a_request_of_kafka() -> None:
    assert read_client_name(kafka_request("webhooks-1")) == "webhooks-1"
    assert read_client_name(b"GET") is None
    assert read_client_name(struct.pack(">ihhih", 10, 18, 3, 1, -1)) is None
