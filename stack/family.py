"""A process and all it has started: signalled, and waited for until none of them runs."""

import contextlib
import signal
import time
from collections.abc import Iterable

import psutil


def family_of(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def send(number: signal.Signals, family: Iterable[psutil.Process]) -> None:
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def runs(process: psutil.Process) -> bool:
    """A zombie runs no more, even where nobody collects it (containers without an init process)."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_gone(family: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until nobody of the family runs; returns those that still do when the time is over."""
    deadline = time.monotonic() + seconds
    left = [process for process in family if runs(process)]
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = [process for process in left if runs(process)]
    return left
