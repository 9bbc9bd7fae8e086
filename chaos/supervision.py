"""The processes of a running stack, through its supervisord: their pids, and stopping and starting them."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from xmlrpc.client import Fault, ServerProxy

import psutil
from supervisor.states import ProcessStates
from supervisor.xmlrpc import Faults, SupervisorTransport

from stack.processes import process_tree

_POLL_SECONDS = 0.1
_DOWN = (ProcessStates.FATAL, ProcessStates.STOPPED)


class NotRunningError(Exception):
    """The process does not run, or did not start in time."""


class Supervision:
    """May be used by several threads: each call has a connection of its own."""

    def __init__(self, directory: Path) -> None:
        self._socket = (directory / "rpc").readlink() / "rpc"
        self._groups = {info["name"]: info["group"] for info in self._infos()}
        self._stopped: set[str] = set()
        """What is to stay stopped for now."""

    def pid(self, name: str) -> int:
        """Return the pid of a process. Raises NotRunningError."""
        pid = self.pids().get(name, 0)
        if not pid:
            raise NotRunningError(f"{name} does not run")
        return pid

    def pids(self) -> dict[str, int]:
        return {info["name"]: int(info["pid"]) for info in self._infos() if info["pid"]}

    def tree(self, name: str) -> list[psutil.Process]:
        """Return a process and its children. Raises NotRunningError."""
        return process_tree(self.pid(name))

    def wait_for_other(self, name: str, pid: int, seconds: float) -> int:
        """Wait until a process runs that is not `pid`, and return its pid. Raises NotRunningError."""
        deadline = time.monotonic() + seconds
        while (found := self.pids().get(name, 0)) in (0, pid):
            if time.monotonic() > deadline:
                raise NotRunningError(f"{name} was not started again within {seconds:g} s")
            self.revive()
            time.sleep(_POLL_SECONDS)
        return found

    def stop(self, name: str, seconds: float = 60) -> None:
        """Ask a process to stop, and wait. Raises NotRunningError if it still runs after `seconds`."""
        self._stopped.add(name)
        self._call("stopProcess", name, allowed=Faults.NOT_RUNNING)
        deadline = time.monotonic() + seconds
        while name in self.pids():
            if time.monotonic() > deadline:
                raise NotRunningError(f"{name} still runs {seconds:g} s after it was asked to stop")
            time.sleep(_POLL_SECONDS)

    def start(self, name: str) -> None:
        """Start a process, unless it runs or is about to."""
        self._stopped.discard(name)
        self._call("startProcess", name, allowed=Faults.ALREADY_STARTED)

    def revive(self) -> list[str]:
        """Start the processes that supervisord has given up, as a cluster would. Return their names."""
        down = [
            info["name"]
            for info in self._infos()
            if info["state"] in _DOWN and info["name"] not in self._stopped
        ]
        for name in down:
            self.start(name)
        return down

    def _infos(self) -> list[Mapping[str, Any]]:
        return cast("list[Mapping[str, Any]]", self._rpc().getAllProcessInfo())

    def _call(self, method: str, name: str, *, allowed: int) -> None:
        try:
            getattr(self._rpc(), method)(f"{self._groups[name]}:{name}", False)
        except Fault as fault:
            if fault.faultCode != allowed:
                raise NotRunningError(f"{name}: {fault.faultString}") from fault

    def _rpc(self) -> Any:
        transport = SupervisorTransport(serverurl=f"unix://{self._socket}")
        return cast("Any", ServerProxy("http://localhost", transport)).supervisor
