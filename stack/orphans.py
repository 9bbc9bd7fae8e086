"""Processes of an earlier run in the same directory, whose front was killed: found and stopped, in order."""

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
    """What still runs of the stack in one directory."""

    supervisors: list[psutil.Process] = field(default_factory=list)
    services: list[psutil.Process] = field(default_factory=list)
    brokers: list[psutil.Process] = field(default_factory=list)
    databases: list[psutil.Process] = field(default_factory=list)

    def all(self) -> list[psutil.Process]:
        return [*self.supervisors, *self.services, *self.brokers, *self.databases]


def stop_orphans(directory: Path, say: Callable[[str], None]) -> bool:
    """Stop what runs under this directory's mark; says what it finds. Returns whether there was anything."""
    found = find_orphans(directory)
    if not found.all():
        return False
    say("Stopping processes that nobody watches over any more: " + ", ".join(map(_describe, found.all())))
    # A supervisord that lives stops its programs in the right order by itself, and must not restart any.
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
    for process in _marked(directory):
        command = process.info["cmdline"] or []
        if "supervisor.supervisord" in command:
            found.supervisors.append(process)
        elif "kafka.Kafka" in command:
            found.brokers.append(process)
        elif command and Path(command[0]).name != "postgres":
            found.services.append(process)
    # PostgreSQL writes its title over its environment, so its own pid file leads to it instead.
    if server := find_postmaster(directory / "postgres" / "data"):
        found.databases.append(server)
    return found


def _marked(directory: Path) -> Iterator[psutil.Process]:
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


def _stop(family: list[psutil.Process], asked: list[psutil.Process], stop_signal: signal.Signals) -> None:
    """Ask `asked` to end, frozen or not; what is left of the whole family in the end is killed."""
    send_signal(signal.SIGCONT, family)
    send_signal(stop_signal, asked)
    left = wait_until_gone(family, ORPHAN_STOP_SECONDS)
    send_signal(signal.SIGKILL, left)
    wait_until_gone(left, ORPHAN_STOP_SECONDS)


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.name()} (pid {process.pid})"
    except psutil.NoSuchProcess:
        return f"pid {process.pid}"
