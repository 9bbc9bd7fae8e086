"""Ctrl-C, SIGTERM and SIGHUP: the first asks the stack to stop, those after it change nothing."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

WANTED_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(BaseException):
    """Somebody wants the stack to stop. Not an Exception, so that nobody mistakes it for a failure."""


def _request_stop(_number: int, _frame: FrameType | None) -> None:
    finish_undisturbed()
    raise StopRequested


def finish_undisturbed() -> None:
    """From here on the signals change nothing: stopping is under way."""
    for number in WANTED_STOP:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def stop_signals() -> Iterator[None]:
    # Who starts us with nohup wants us to outlive the terminal.
    wanted = [number for number in WANTED_STOP if number != signal.SIGHUP or not _is_ignored(number)]
    before = {number: signal.signal(number, _request_stop) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) == signal.SIG_IGN
