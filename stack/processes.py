"""Processes: signals for a process tree, waiting until processes are gone, and waiting until a server is ready."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

from stack.errors import StackError

POLL_SECONDS = 0.05


def last_lines(log: Path, count: int = 20) -> str:
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-count:])
    except OSError:
        return ""


def wait_until(
    ready: Callable[[], bool], *, name: str, log: Path, seconds: float, running: Callable[[], bool]
) -> None:
    """Wait until `ready()`. Raises StackError with the end of the log if the process exits or is too slow."""
    deadline = time.monotonic() + seconds
    while not ready():
        if not running():
            problem = f"{name} exited while it was starting."
        elif time.monotonic() > deadline:
            problem = f"{name} is not ready after {seconds:.0f} seconds."
        else:
            time.sleep(POLL_SECONDS)
            continue
        raise StackError(f"{problem} The end of its log:\n{last_lines(log)}", f"The full log is in {log}.")


def process_tree(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def send_signal(number: signal.Signals, processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def is_running(process: psutil.Process) -> bool:
    """Tell whether the process runs. A zombie does not, even if nobody reaps it, as in a container without init."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until_gone(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until none of the processes runs. Return those that still run after `seconds`."""
    deadline = time.monotonic() + seconds
    left = [process for process in processes if is_running(process)]
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = [process for process in left if is_running(process)]
    return left
