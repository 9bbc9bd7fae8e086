"""How much processor time programs have used."""

from collections.abc import Mapping

import psutil


def cpu_seconds(programs: Mapping[str, int]) -> dict[str, float]:
    """Of each program, by its name, so far; a program is the process of that id and all that it started.

    What has ended counts too, as long as its parent waited for it, and PostgreSQL's does: two readings of a process
    tree can be subtracted, though the workers of autovacuum come and go in between.
    """
    return {name: _of_tree(psutil.Process(pid)) for name, pid in programs.items()}


def _of_tree(process: psutil.Process) -> float:
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue  # it has ended since, and its parent's times have it now, or at the next reading
        total += times.user + times.system + times.children_user + times.children_system
    return total
