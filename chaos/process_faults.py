"""Faults of processes: kills, stops, full disks, restarts."""

import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence

import psutil

from chaos.fault_plan import Planned
from chaos.supervision import NotRunningError, Supervision
from stack.postgres import is_answering
from stack.processes import is_running, send_signal
from stack.startup_phases import is_ready

Pause = Callable[[float], None]
"""Waits; returns early when the run is interrupted."""
_RESTART_SECONDS = 60.0
_READY_SECONDS = 25.0
_LIMIT_AGAIN_SECONDS = 0.2
_LARGEST_BROKER_FILE = 4096
_LARGEST_POSTGRES_FILE = 1 << 20
"""While a disk is full. PostgreSQL and Java ignore the signal, so that their writes fail, as they do without space.

PostgreSQL has files in shared memory, which a disk that is full does not concern: they are smaller than this.
"""


class ProcessFaults:
    def __init__(
        self, supervision: Supervision, ports: dict[str, int], postgres_url: str, pause: Pause
    ) -> None:
        self._supervision = supervision
        self._ports = ports
        """Of the services, by the name of the process."""
        self._postgres_url = postgres_url
        self._pause = pause
        self._limited: set[str] = set()
        """Processes whose disk was full."""

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
        self._limited.add(fault.target)
        largest = _LARGEST_POSTGRES_FILE if fault.target == "postgres" else _LARGEST_BROKER_FILE
        limited: dict[int, psutil.Process] = {}
        deadline = time.monotonic() + fault.seconds
        try:
            while (left := deadline - time.monotonic()) > 0:
                new = [each for each in self._running_tree(fault.target) if each.pid not in limited]
                limit_files(new, largest)
                limited |= {process.pid: process for process in new}
                self._pause(min(left, _LIMIT_AGAIN_SECONDS))
        finally:
            limit_files((*limited.values(), *self._running_tree(fault.target)), resource.RLIM_INFINITY)
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
            tree = self._running_tree(name)
            send_signal(signal.SIGCONT, tree)
            if name in self._limited:
                limit_files(tree, resource.RLIM_INFINITY)
            self._supervision.start(name)

    def _running_tree(self, name: str) -> list[psutil.Process]:
        try:
            return self._supervision.tree(name)
        except NotRunningError:
            return []

    def _wait_for_postgres(self, fault: Planned) -> None:
        """Wait until PostgreSQL answers. One that does not for long is killed, as an operator would do.

        PostgreSQL 18 can hang for ever if its recovery fails because the disk is full.
        """
        began, has_waited_long = time.monotonic(), False
        while fault.target == "postgres" and not is_answering(self._postgres_url):
            waited = time.monotonic() - began
            if waited > _RESTART_SECONDS:
                raise NotRunningError(f"PostgreSQL does not answer {_RESTART_SECONDS:g} s later")
            if waited > _RESTART_SECONDS / 2 and not has_waited_long:
                send_signal(signal.SIGKILL, self._running_tree(fault.target))
                has_waited_long = True
            self._supervision.revive()
            self._pause(0.2)


def _is_backend(process: psutil.Process) -> bool:
    """Tell whether a process of PostgreSQL serves a client: its title names the role and the database."""
    try:
        return " mizan 127.0.0.1(" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


_SET_LIMIT = """
import os, resource, sys
uid, gid, limit, *pids = map(int, sys.argv[1:])
if os.geteuid() == 0 and uid != 0:
    os.setgroups([]); os.setgid(gid); os.setuid(uid)
for pid in pids:
    try:
        hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, hard))
    except ProcessLookupError:
        pass
"""


def limit_files(processes: Iterable[psutil.Process], limit: int) -> None:
    """Set the largest size of files that processes may write. The hard limit stays, so that it can be undone.

    Only the account of a process may do so, not even root in a container. All must be of one account.
    """
    running = [process for process in processes if is_running(process)]
    if not running:
        return
    try:
        owner = (running[0].uids().real, running[0].gids().real)
    except psutil.NoSuchProcess:
        return
    pids = (process.pid for process in running)
    command = [sys.executable, "-I", "-S", "-c", _SET_LIMIT, *map(str, (*owner, limit, *pids))]
    subprocess.run(command, check=True, capture_output=True)
