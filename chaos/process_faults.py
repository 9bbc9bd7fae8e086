"""Faults of processes: kills, stops, full disks, restarts."""

import resource
import signal
import time
from collections.abc import Callable, Sequence

import psutil

from chaos.fault_plan import Planned
from chaos.supervision import NotRunningError, Supervision
from stack.postgres import is_answering
from stack.processes import send_signal
from stack.startup_phases import is_ready

Pause = Callable[[float], None]
"""Waits; returns early when the run is interrupted."""
_RESTART_SECONDS = 60.0
_READY_SECONDS = 25.0
_LIMIT_AGAIN_SECONDS = 0.2
_LARGEST_FILE_BYTES = 4096
"""While a disk is full. PostgreSQL and Java ignore the signal, so that their writes fail, as they do without space."""


class ProcessFaults:
    def __init__(
        self, supervision: Supervision, ports: dict[str, int], postgres_url: str, pause: Pause
    ) -> None:
        self._supervision = supervision
        self._ports = ports
        """Of the services, by the name of the process."""
        self._postgres_url = postgres_url
        self._pause = pause

    def kill(self, fault: Planned) -> None:
        """Kill a process with its children, and wait until it was started again.

        Of PostgreSQL only the postmaster is killed: the others exit when they notice.
        """
        tree = self._supervision.tree(fault.target)
        send_signal(signal.SIGKILL, tree[:1] if fault.target == "postgres" else tree)
        self._supervision.wait_for_other(fault.target, tree[0].pid, _RESTART_SECONDS)
        self._wait_for_postgres(fault)

    def kill_child(self, fault: Planned) -> None:
        """Kill one worker of a service, or one backend of PostgreSQL, which then restarts all of them."""
        _, *children = self._supervision.tree(fault.target)
        if fault.target == "postgres":
            children = [child for child in children if _is_backend(child)]
        if not children:
            raise NotRunningError(f"{fault.target} has no children")
        send_signal(signal.SIGKILL, [children[fault.number % len(children)]])
        self._wait_for_postgres(fault)

    def stop(self, fault: Planned) -> None:
        stopped = self._supervision.tree(fault.target)
        send_signal(signal.SIGSTOP, stopped)
        try:
            self._pause(fault.seconds)
        finally:
            send_signal(signal.SIGCONT, stopped)

    def fill_disk(self, fault: Planned) -> None:
        """Let no file of a process grow. It may exit and be started again: then the disk is still full."""
        limited: dict[int, psutil.Process] = {}
        deadline = time.monotonic() + fault.seconds
        try:
            while (left := deadline - time.monotonic()) > 0:
                for process in self._running_tree(fault.target):
                    if process.pid not in limited:
                        _limit_files(process, _LARGEST_FILE_BYTES)
                        limited[process.pid] = process
                self._pause(min(left, _LIMIT_AGAIN_SECONDS))
        finally:
            for process in (*limited.values(), *self._running_tree(fault.target)):
                _limit_files(process, resource.RLIM_INFINITY)
        self._supervision.wait_for_other(fault.target, 0, _RESTART_SECONDS)
        self._wait_for_postgres(fault)

    def restart_all(self, names: Sequence[str]) -> None:
        """Restart services one by one; each must be ready before the next is stopped, or fail to be in time."""
        for name in names:
            self.restart(name)
            deadline = time.monotonic() + _READY_SECONDS
            while not is_ready(self._ports[name]) and time.monotonic() < deadline:
                self._pause(0.3)

    def restart_often(self, fault: Planned) -> None:
        """Restart a member of consumer groups again and again, so that each of its groups rebalances each time."""
        for _ in range(fault.amount):
            self.restart(fault.target)
            self._pause(1.5)

    def restart(self, name: str) -> None:
        self._supervision.stop(name)
        self._supervision.start(name)

    def resume_all(self, names: Sequence[str]) -> None:
        """Continue and start everything, whatever was interrupted."""
        self._supervision.revive()
        for name in names:
            for process in self._running_tree(name):
                send_signal(signal.SIGCONT, [process])
                _limit_files(process, resource.RLIM_INFINITY)
            self._supervision.start(name)

    def _running_tree(self, name: str) -> list[psutil.Process]:
        try:
            return self._supervision.tree(name)
        except NotRunningError:
            return []

    def _wait_for_postgres(self, fault: Planned) -> None:
        deadline = time.monotonic() + _RESTART_SECONDS
        while fault.target == "postgres" and not is_answering(self._postgres_url):
            if time.monotonic() > deadline:
                raise NotRunningError(f"PostgreSQL does not answer {_RESTART_SECONDS:g} s later")
            self._supervision.revive()
            self._pause(0.2)


def _is_backend(process: psutil.Process) -> bool:
    """Tell whether a process of PostgreSQL serves a client: its title names the role and the database."""
    try:
        return " mizan 127.0.0.1(" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def _limit_files(process: psutil.Process, limit: int) -> None:
    """Set the largest size of files that a process may write. The hard limit stays, so that it can be undone."""
    try:
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, hard))
    except ProcessLookupError:
        return
