"""A watchdog process: when whoever started it dies, however it dies, it kills the processes it was told of.

Its standard input is a pipe from that process. Lines name pids to guard; the end of the input is the death.
"""

import contextlib
import subprocess
import sys

import psutil


class Watchdog:
    """The side of the process whose children shall not outlive it."""

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
        # A process object remembers when it began, so a pid given to another program later is left alone.
        with contextlib.suppress(psutil.NoSuchProcess):
            watched.append(psutil.Process(int(line)))
    for process in watched:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


if __name__ == "__main__":
    main()
