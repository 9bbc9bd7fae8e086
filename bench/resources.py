"""Peak memory and processor time of programs."""

import os
from collections.abc import Mapping
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

import psutil

from bench.figures import Figure


def cpu_seconds(programs: Mapping[str, int]) -> dict[str, float]:
    """Return the processor time so far of each program: the process with that id and all its children.

    Exited children count too if their parent has waited for them, as PostgreSQL does. So two readings can be
    subtracted although the workers of autovacuum come and go in between.
    """
    return {name: _tree_cpu_seconds(psutil.Process(pid)) for name, pid in programs.items()}


def _tree_cpu_seconds(process: psutil.Process) -> float:
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue  # it has exited, so the times of its parent include it now or at the next reading
        total += times.user + times.system + times.children_user + times.children_system
    return total


# A sample takes 30 ms of processor time, which does not affect the results.
_SAMPLE_INTERVAL_S = 1.0


class PeakMemory:
    """Samples the memory of this process and its children, summed by program.

    Counts private memory, because the processes of PostgreSQL share their buffers.
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
                "peak of its private memory",
            )
            for program, peak in sorted(self._peaks.items())
        ]

    def _sample(self) -> None:
        me = psutil.Process(os.getpid())
        while not self._stop.wait(_SAMPLE_INTERVAL_S):
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
    """Return the name of our service, or of the program."""
    command = process.cmdline()
    parent = process.parent()
    if parent and "multiprocessing" in " ".join(command):  # a worker of its parent
        return _program(parent)
    if command[1:2] != ["-m"]:
        return Path(process.name()).name
    package, _, name = command[2].partition(".")
    return name if package == "services" else package
