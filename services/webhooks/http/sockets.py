"""Which of curl's sockets can go on: an epoll of our own, so that one that hangs costs nothing."""

import logging
import os
from contextlib import suppress
from select import EPOLLIN, EPOLLOUT, epoll
from threading import Lock

import pycurl

_MOST_EVENTS = 512
_EPOLL_MASKS = {pycurl.POLL_IN: EPOLLIN, pycurl.POLL_OUT: EPOLLOUT, pycurl.POLL_INOUT: EPOLLIN | EPOLLOUT}

_log = logging.getLogger(__name__)


class SocketPoller:
    """The epoll. A socket that curl has no use for at the moment stays in it, for it is mostly used again soon:
    to take it out and put it in again would be a tenth of what a request costs."""

    def __init__(self) -> None:
        self._epoll = epoll()
        self._masks: dict[int, int] = {}
        self._unused: set[int] = set()
        self._interruptions = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._unused.add(self._interruptions)
        self._epoll.register(self._interruptions, EPOLLIN)
        self._is_woken = False
        self._is_closed = False
        self._closing = Lock()

    def wait(self, pause: float) -> list[int]:
        """Those that curl waits for, and that are ready."""
        sockets = [socket for socket, _ in self._epoll.poll(pause, _MOST_EVENTS)]
        if self._unused.isdisjoint(sockets):
            return sockets
        for socket in self._unused.intersection(sockets):
            if socket == self._interruptions:
                os.eventfd_read(socket)
            else:
                self._forget(socket)
        return [socket for socket in sockets if socket in self._masks]

    def watch(self, what: int, socket: int, _multi: pycurl.CurlMulti, _data: object) -> None:
        """curl's callback: what it waits for. An error here would end all requests; this one ends at its limit."""
        if what == pycurl.POLL_REMOVE:
            self._unused.add(socket)
            return
        self._unused.discard(socket)
        mask = _EPOLL_MASKS.get(what, 0)
        if self._masks.get(socket) != mask:
            try:
                change = self._epoll.modify if socket in self._masks else self._epoll.register
                change(socket, mask)
            except OSError:
                _log.exception("cannot wait for socket %d", socket)
            else:
                self._masks[socket] = mask

    def opened(self, socket: int) -> None:
        """A new socket, perhaps by the number of one that was closed, and so has left the epoll."""
        self._unused.discard(socket)
        self._masks.pop(socket, None)

    def forget_all(self) -> None:
        for socket in list(self._masks):
            self._forget(socket)

    def wake(self) -> None:
        self._is_woken = True
        self.interrupt()

    def was_woken(self) -> bool:
        if not self._is_woken:  # and not touched: it may just be set
            return False
        self._is_woken = False
        return True

    def interrupt(self) -> None:
        """Ends a wait. From any thread, also after the end: by then the number may be another file's."""
        with self._closing:
            if not self._is_closed:
                os.eventfd_write(self._interruptions, 1)

    def close(self) -> None:
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                os.close(self._interruptions)
        self._epoll.close()

    def _forget(self, socket: int) -> None:
        self._unused.discard(socket)
        self._masks.pop(socket, None)
        with suppress(OSError):  # it may be closed
            self._epoll.unregister(socket)
