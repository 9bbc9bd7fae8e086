"""A watchdog process: when its parent dies for any reason, it kills the processes that the parent has registered.

Its standard input is a pipe from the parent. Each line is a pid to kill later; the end of the input means death.
"""

import contextlib
import subprocess
import sys

import psutil


class Watchdog:
    """The parent's side: registers child processes that must not outlive the parent."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "stack.watchdog"], stdin=subprocess.PIPE, text=True, start_new_session=True
        )

    def watch(self, pid: int) -> None:
        assert self._process.stdin is not None
        print(pid, file=self._process.stdin, flush=True)

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    watched: list[psutil.Process] = []
    for line in sys.stdin:
        # A psutil process knows its start time, so a pid that another program reuses is left alone.
        with contextlib.suppress(psutil.NoSuchProcess):
            watched.append(psutil.Process(int(line)))
    for process in watched:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


if __name__ == "__main__":
    main()
