"""Waiting for something to become true, with a deadline and an eye on the process it depends on."""

import time
from collections.abc import Callable
from pathlib import Path

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
    """Return once `ready()`. A process that ended or is too slow becomes an error with the end of its log."""
    deadline = time.monotonic() + seconds
    while not ready():
        if not running():
            problem = f"{name} ended while it was starting."
        elif time.monotonic() > deadline:
            problem = f"{name} is not ready after {seconds:.0f} seconds."
        else:
            time.sleep(POLL_SECONDS)
            continue
        raise StackError(f"{problem} The end of its log:\n{last_lines(log)}", f"The whole log is in {log}.")
