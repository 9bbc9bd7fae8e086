"""Orphan cleanup: finds and stops processes of an earlier run in the same directory whose launcher was killed."""

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from stack.postgres import find_postmaster
from stack.processes import process_tree, send_signal, wait_until_gone

ORPHAN_STOP_SECONDS = 60
STACK_DIR_VARIABLE = "MIZAN_STACK_DIR"
"""The environment variable that identifies every process of a stack, also if nothing supervises it any more."""


@dataclass
class OrphanProcesses:
    """The processes that still run of the stack in one directory."""

    supervisors: list[psutil.Process] = field(default_factory=list)
    services: list[psutil.Process] = field(default_factory=list)
    brokers: list[psutil.Process] = field(default_factory=list)
    databases: list[psutil.Process] = field(default_factory=list)

    def all(self) -> list[psutil.Process]:
        return [*self.supervisors, *self.services, *self.brokers, *self.databases]


def stop_orphans(directory: Path, report: Callable[[str], None]) -> bool:
    """Stop the processes of the stack in `directory`, and report them. Return False if there were none."""
    found = find_orphans(directory)
    if not found.all():
        return False
    report("Stopping processes that are not supervised any more: " + ", ".join(map(_describe, found.all())))
    # A running supervisord stops its programs in the right order by itself. It must not restart any.
    for process in found.supervisors:
        _stop(process_tree(process.pid), [process], signal.SIGTERM)
    rest = find_orphans(directory)
    _stop(rest.services, rest.services, signal.SIGTERM)
    _stop(rest.brokers, rest.brokers, signal.SIGTERM)
    for process in rest.databases:
        _stop(process_tree(process.pid), [process], signal.SIGINT)
    return True


def find_orphans(directory: Path) -> OrphanProcesses:
    found = OrphanProcesses()
    for process in _find_by_environment(directory):
        command = process.info["cmdline"] or []
        if "supervisor.supervisord" in command:
            found.supervisors.append(process)
        elif "kafka.Kafka" in command:
            found.brokers.append(process)
        elif command and Path(command[0]).name != "postgres":
            found.services.append(process)
    # PostgreSQL overwrites its environment with its process title, so find it by its pid file.
    if server := find_postmaster(directory / "postgres" / "data"):
        found.databases.append(server)
    return found


def _find_by_environment(directory: Path) -> Iterator[psutil.Process]:
    us = psutil.Process()
    own = {us.pid, *(parent.pid for parent in us.parents())}
    for process in psutil.process_iter(["cmdline", "environ", "status"]):
        environment = process.info["environ"] or {}
        is_ours = (
            environment.get(STACK_DIR_VARIABLE) == str(directory)
            and process.info["status"] != psutil.STATUS_ZOMBIE
        )
        if is_ours and process.pid not in own:
            yield process


def _stop(tree: list[psutil.Process], targets: list[psutil.Process], stop_signal: signal.Signals) -> None:
    """Send the stop signal to `targets`, suspended or not. Kill what remains of the whole tree after the timeout."""
    send_signal(signal.SIGCONT, tree)
    send_signal(stop_signal, targets)
    left = wait_until_gone(tree, ORPHAN_STOP_SECONDS)
    send_signal(signal.SIGKILL, left)
    wait_until_gone(left, ORPHAN_STOP_SECONDS)


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.name()} (pid {process.pid})"
    except psutil.NoSuchProcess:
        return f"pid {process.pid}"
