"""Signals that stop the stack: Ctrl-C, SIGTERM and SIGHUP, and an interrupt that only GNU make has received."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(BaseException):
    """Raised by the first stop signal. Not an Exception, so that no handler takes it for a failure."""


def _request_stop(_number: int, _frame: FrameType | None) -> None:
    ignore_stop_signals()
    raise StopRequested


def ignore_stop_signals() -> None:
    """Ignore further stop signals while the stack stops."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def stop_signals() -> Iterator[None]:
    """Raise StopRequested in this block at the first Ctrl-C, SIGTERM or SIGHUP. Later ones are ignored."""
    # With nohup, the stack must survive the terminal.
    handled = [number for number in STOP_SIGNALS if number != signal.SIGHUP or not _is_ignored(number)]
    before = {number: signal.signal(number, _request_stop) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) == signal.SIG_IGN


_INTERRUPT = 1 << (signal.SIGINT - 1)


class MakeInterrupt:
    """Detects an interrupt that reached GNU make but not us: make does not pass it on, and waits for us forever.

    make catches SIGINT only until it has received one, which /proc shows. Without /proc nothing is detected.
    """

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._caught = _catches_interrupts(self._parent)

    def received(self) -> bool:
        return self._caught and not _catches_interrupts(self._parent)


def _catches_interrupts(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    caught = next((line for line in status.splitlines() if line.startswith("SigCgt:")), "SigCgt: 0")
    return bool(int(caught.split()[1], 16) & _INTERRUPT)
