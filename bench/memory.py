"""Peak memory by process, sampled while the measurements run."""

import os
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

import psutil

from bench.figures import Figure

# A look takes 30 ms of a processor, which is not to be seen in the figures.
_EVERY_S = 1.0


class PeakMemory:
    """Of this process and its children, by program; a program of many processes counts as their sum.

    PostgreSQL's processes share their buffers, so what is private to each is summed, not what is resident.
    """

    def __init__(self) -> None:
        self._peaks: dict[str, int] = {}
        self._stop = Event()
        self._thread = Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def figures(self) -> list[Figure]:
        return [
            Figure(
                f"peak_memory_mb_{program}",
                round(peak / 2**20, 1),
                "most memory at one moment, private to it",
            )
            for program, peak in sorted(self._peaks.items())
        ]

    def _sample(self) -> None:
        me = psutil.Process(os.getpid())
        while not self._stop.wait(_EVERY_S):
            now: dict[str, int] = {}
            for process in [me, *me.children(recursive=True)]:
                try:
                    program = "bench" if process == me else _program(process)
                    now[program] = now.get(program, 0) + process.memory_full_info().uss
                except psutil.Error:
                    continue
            for program, memory in now.items():
                self._peaks[program] = max(self._peaks.get(program, 0), memory)


def _program(process: psutil.Process) -> str:
    """The service's name for our own, the program's for others."""
    command = process.cmdline()
    parent = process.parent()
    if parent and "multiprocessing" in " ".join(command):  # a worker of the program that started it
        return _program(parent)
    if command[1:2] != ["-m"]:
        return Path(process.name()).name
    package, _, name = command[2].partition(".")
    return name if package == "services" else package
