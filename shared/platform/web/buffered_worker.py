"""A gunicorn worker whose threads never wait for a client: a request gets a thread once it has arrived.

gunicorn's threaded worker gives a connection a thread with its first byte, and closes it in its main loop, which may
wait for the client. So some dozens of clients that send half a request, or do not close, would stop a whole service.
Here a request waits in the kernel's buffer, where it is only peeked at, until its headers and its body are complete. A
client that takes longer than REQUEST_LIMIT_S is disconnected, and if there are too many, those that waited longest.
"""

import errno
import re
import socket
from contextlib import suppress
from functools import partial
from selectors import EVENT_READ
from time import monotonic
from typing import Any

from gunicorn.http.errors import ParseException  # type: ignore[import-untyped]
from gunicorn.workers.gthread import TConn, ThreadWorker  # type: ignore[import-untyped]

from shared.platform.web.app import MAX_BODY_BYTES, REQUEST_LIMIT_S

CLIENT_TIMEOUT_S = 60.0
MAX_HEADER_BYTES = 32 * 1024
_BUFFER_BYTES = 4 * (MAX_HEADER_BYTES + MAX_BODY_BYTES)  # the kernel counts its own overhead, too

_END_OF_HEADERS = b"\r\n\r\n"
_CONTENT_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", re.IGNORECASE)
_CHUNK_SIZE = re.compile(rb"([0-9a-f]{1,8})[ \t]*(?:;[^\r]*)?\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r]*chunked", re.IGNORECASE)


def bytes_missing(data: bytes) -> int:
    """Return how many bytes the request that begins with `data` needs at least to be complete, 0 if it is.

    A body of more than MAX_BODY_BYTES is not waited for: the application refuses it without reading it.
    """
    head, end, body = data.partition(_END_OF_HEADERS)
    if not end:
        return 1
    head += b"\r\n"
    if _CHUNKED.search(head):
        return 0 if _is_chunked_body_complete(body) else 1
    length = _CONTENT_LENGTH.search(head)
    if length is None or int(length[1]) > MAX_BODY_BYTES:
        return 0
    return max(0, int(length[1]) - len(body))


def _is_chunked_body_complete(body: bytes) -> bool:
    """Return whether the last chunk has arrived, or the body is invalid or too large: then nothing is waited for."""
    position = content = 0
    while (line_end := body.find(b"\r\n", position)) >= 0:
        line = _CHUNK_SIZE.match(body, position)
        if line is None:
            return True
        size = int(line[1], 16)
        if size == 0:  # trailers may follow, up to an empty line
            return body.find(_END_OF_HEADERS, line_end) >= 0
        start = line_end + 2
        content += min(size, len(body) - start)
        if content > MAX_BODY_BYTES:
            return True
        position = start + size + 2
    return False


class _Connection(TConn):  # type: ignore[misc]
    """`peeked` is how many bytes of its next request wait in the kernel, None before the first look."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.peeked: int | None = None

    def close(self, graceful: bool = False) -> None:
        """Close it without waiting for the client.

        With `graceful`, what the client has sent is read first: otherwise the kernel would reset the connection.
        """
        with suppress(OSError):
            self.sock.setblocking(False)
            if graceful:
                self.sock.shutdown(socket.SHUT_WR)
                self.sock.recv(_BUFFER_BYTES)
        super().close()


class BufferedWorker(ThreadWorker):  # type: ignore[misc]
    def accept(self, listener: socket.socket) -> None:
        try:
            client, address = listener.accept()
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                raise
            return
        self.nr_conns += 1
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        self.enqueue_req(_Connection(self.cfg, client, address, listener.getsockname()))

    def enqueue_req(self, conn: _Connection) -> None:
        """Give the connection a thread if its request has arrived. Otherwise wait for more of it."""
        # The parser may have read the start of this request together with the one before.
        start: bytes = conn.parser.unreader.buf.getvalue() if conn.initialized else b""
        try:
            waiting = _peek(conn.sock)
        except OSError:
            self._drop(conn)
            return
        data = start + (waiting or b"")
        missing = bytes_missing(data)
        # Readable, but nothing new: the client has closed, or the kernel has no memory for more.
        is_stuck = waiting == b"" or (waiting is not None and len(waiting) == conn.peeked)
        if not missing:
            conn.peeked = None
            conn.data_ready = True
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            super().enqueue_req(conn)
        elif is_stuck or (len(data) > MAX_HEADER_BYTES and _END_OF_HEADERS not in data):
            self._drop(conn)
        else:
            self._wait_for_more(conn, len(waiting or b""), missing)

    def handle_request(self, req: Any, conn: _Connection) -> Any:
        """Bound every wait for the client, whatever `bytes_missing` got wrong."""
        conn.sock.settimeout(CLIENT_TIMEOUT_S)
        return super().handle_request(req, conn)

    def _keepalive_after(self, conn: _Connection, keepalive: bool) -> bool:
        """Keep a connection only if the request was read whole. Never wait for the rest of a body.

        There is no deadline: a thread that was paused would miss it with nothing left to read, and close a connection
        on which the next request may be coming. No error is reported: the response has been sent.
        """
        if not keepalive:
            return False
        conn.sock.setblocking(False)
        with suppress(OSError, ParseException):
            return bool(conn.parser.finish_body(max_bytes=MAX_BODY_BYTES + 1))
        return False

    def murder_keepalived(self, force: bool = False) -> None:
        """Close idle connections. gunicorn calls it after each round of its main loop.

        A connection whose next request arrived while the loop was busy is not idle: to close it would lose the request.
        So each is looked at just before it is closed.
        """
        if force:
            super().murder_keepalived(force)
        now = monotonic()
        while self.keepalived_conns and self.keepalived_conns[0].timeout <= now:
            conn = self.keepalived_conns[0]
            request = None
            with suppress(OSError):
                request = _peek(conn.sock)
            if request:
                self.on_client_socket_readable(conn, conn.sock)
            else:
                self.keepalived_conns.popleft()
                self._unregister(conn)
                self._drop(conn)

    def murder_pending(self) -> None:
        """Disconnect clients whose request did not arrive in time. gunicorn calls it about once a second."""
        now = monotonic()
        for conn in list(self.pending_conns):
            if conn.timeout <= now or (not self.alive and not conn.peeked):
                self._forget_pending(conn)

    def _wait_for_more(self, conn: _Connection, arrived: int, missing: int) -> None:
        if conn.peeked is None:
            conn.timeout = monotonic() + REQUEST_LIMIT_S
        conn.peeked = arrived
        # The poller reports the socket when so much has arrived, or when the client has closed it.
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, arrived + missing)
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))
        if self.nr_conns >= self.worker_connections:
            self._forget_pending(min(self.pending_conns, key=lambda each: each.timeout))

    def _forget_pending(self, conn: _Connection) -> None:
        self.pending_conns.remove(conn)
        self._unregister(conn)
        self._drop(conn)

    def _unregister(self, conn: _Connection) -> None:
        with suppress(OSError, KeyError, ValueError):
            self.poller.unregister(conn.sock)

    def _drop(self, conn: _Connection) -> None:
        self.nr_conns -= 1
        conn.close()


def _peek(client: socket.socket) -> bytes | None:
    """Return what has arrived and leave it there: b"" if the client has closed, None if there is nothing yet."""
    client.setblocking(False)
    try:
        return client.recv(MAX_HEADER_BYTES + MAX_BODY_BYTES + 1, socket.MSG_PEEK)
    except BlockingIOError:
        return None
