"""The operations pages of a process without gunicorn."""

import http.client
import socket
import threading
from time import sleep

import pytest
from flask import Flask

from shared.platform.process import PortNotUsableError
from shared.platform.web.operations_server import serve_operations


def get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_server_listens_on_a_free_port_until_closed(app: Flask) -> None:
    """Port 0 picks a free port; after closing, nothing listens and no thread is left."""
    before = set(threading.enumerate())
    server = serve_operations(app, "127.0.0.1", 0)
    assert get(server.port, "/healthz") == (200, b'{"status":"alive"}\n')
    assert get(server.port, "/nowhere")[0] == 404
    server.close()
    with pytest.raises(ConnectionRefusedError):
        get(server.port, "/healthz")
    assert set(threading.enumerate()) <= before
    server.close()


def test_server_closes_while_a_client_keeps_a_connection_open(app: Flask) -> None:
    """A scraper with a persistent connection does not delay the stop."""
    server = serve_operations(app, "127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as idle:
        assert get(server.port, "/healthz")[0] == 200
        server.close()
        assert idle.recv(1) == b""


def test_port_in_use_is_a_clear_error(app: Flask) -> None:
    """The error names host, port and reason, and is raised to the caller, not in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortNotUsableError, match=rf"127\.0\.0\.1 port {port}: Address already in use"):
            serve_operations(app, "127.0.0.1", port)


def test_port_can_be_reused_at_once(app: Flask) -> None:
    """A restarted worker finds its port free."""
    first = serve_operations(app, "127.0.0.1", 0)
    assert get(first.port, "/healthz")[0] == 200
    first.close()
    second = serve_operations(app, "127.0.0.1", first.port)
    assert get(second.port, "/healthz")[0] == 200
    second.close()


def test_server_closes_while_a_request_ends(app: Flask) -> None:
    """Closing and the thread of the request both wake the loop; the pipe must stay open until both have written."""
    server = serve_operations(app, "127.0.0.1", 0)
    trigger = server._server.trigger
    wake = trigger._physical_pull

    def wake_a_moment_after_another() -> None:
        wake()
        sleep(0.2)  # until the loop has handled the first wake-up
        wake()

    trigger._physical_pull = wake_a_moment_after_another
    server.close()
