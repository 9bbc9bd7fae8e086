"""Waits for curl's sockets with an epoll of our own, so that a socket without events costs nothing."""

import logging
import os
from contextlib import suppress
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
from select import EPOLLIN, EPOLLOUT, epoll
from threading import Lock

import pycurl

_MAX_EVENTS = 512
_EPOLL_MASKS = {pycurl.POLL_IN: EPOLLIN, pycurl.POLL_OUT: EPOLLOUT, pycurl.POLL_INOUT: EPOLLIN | EPOLLOUT}

_log = logging.getLogger(__name__)


class SocketPoller:
    """An epoll of curl's sockets, with a way to end a wait from another thread.

    A socket that curl does not wait for at the moment stays registered, because curl usually uses it again soon.
    Removing and adding it each time would cost a tenth of a whole request.
    """

    def __init__(self) -> None:
        self._epoll = epoll()
        self._masks: dict[int, int] = {}
        self._unused: set[int] = set()
        self._wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._unused.add(self._wakeup)
        self._epoll.register(self._wakeup, EPOLLIN)
        self._is_woken = False
        self._is_closed = False
        self._close_lock = Lock()

    def open_multi(self, max_connections: int) -> pycurl.CurlMulti:
        """Return a new multi handle whose sockets are watched here. Above the limit it closes idle connections."""
        multi = pycurl.CurlMulti()
        multi.setopt(pycurl.M_SOCKETFUNCTION, self.watch)
        descriptors, _ = getrlimit(RLIMIT_NOFILE)
        limit = max_connections if descriptors == RLIM_INFINITY else min(max_connections, descriptors // 8)
        multi.setopt(pycurl.M_MAXCONNECTS, limit)
        return multi

    def wait(self, pause: float) -> list[int]:
        """Wait for at most `pause` seconds. Returns the sockets that are ready and that curl waits for."""
        sockets = [socket for socket, _ in self._epoll.poll(pause, _MAX_EVENTS)]
        if self._unused.isdisjoint(sockets):
            return sockets
        for socket in self._unused.intersection(sockets):
            if socket == self._wakeup:
                os.eventfd_read(socket)
            else:
                self._forget(socket)
        return [socket for socket in sockets if socket in self._masks]

    def watch(self, what: int, socket: int, _multi: pycurl.CurlMulti, _data: object) -> None:
        """Register what curl waits for; this is curl's socket callback.

        An exception here would end all requests. A socket that cannot be registered ends its own at the time limit.
        """
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
                _log.exception("cannot register socket %d", socket)
            else:
                self._masks[socket] = mask

    def note_opened(self, socket: int) -> None:
        """Note a new socket. It may have the number of a closed one, which the kernel has removed from the epoll."""
        self._unused.discard(socket)
        self._masks.pop(socket, None)

    def forget_all(self) -> None:
        for socket in list(self._masks):
            self._forget(socket)

    def wake(self) -> None:
        """End the current wait, or the next one, and make `was_woken` return True once. From any thread."""
        self._is_woken = True
        self.interrupt()

    def was_woken(self) -> bool:
        if not self._is_woken:  # do not reset it here: another thread may be setting it
            return False
        self._is_woken = False
        return True

    def interrupt(self) -> None:
        """End the current wait, or the next one. From any thread, also after `close`.

        After `close` the descriptor may belong to another file, so nothing is written then.
        """
        with self._close_lock:
            if not self._is_closed:
                os.eventfd_write(self._wakeup, 1)

    def close(self) -> None:
        with self._close_lock:
            if not self._is_closed:
                self._is_closed = True
                os.close(self._wakeup)
        self._epoll.close()

    def _forget(self, socket: int) -> None:
        self._unused.discard(socket)
        self._masks.pop(socket, None)
        with suppress(OSError):  # it may be closed already
            self._epoll.unregister(socket)
