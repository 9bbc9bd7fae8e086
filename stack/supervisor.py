"""Runs supervisord as a child process: writes its configuration, and controls it through its XML-RPC interface."""

import contextlib
import http.client
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from shutil import rmtree
from typing import Any, cast
from xmlrpc.client import Error as RpcError
from xmlrpc.client import Fault, ServerProxy

import psutil
from supervisor.states import ProcessStates
from supervisor.xmlrpc import SupervisorTransport

from shared.platform.private_files import write_private_file
from stack.errors import StackError
from stack.processes import POLL_SECONDS, is_running, wait_until
from stack.programs import Program

SUPERVISOR_START_SECONDS = 30
# The path of a unix socket may have about 100 bytes, on some systems fewer.
MAX_SOCKET_DIRECTORY_LENGTH = 60


def supervisord_conf(programs: Sequence[Program], *, directory: Path, logs: Path, socket: Path) -> str:
    """Return the configuration file. `programs` are in start order; supervisord stops their groups in reverse order."""
    sections = [
        _section("unix_http_server", {"file": str(socket), "chmod": "0700"}),
        _section("supervisord", _own_settings(directory, logs)),
        _section(
            "rpcinterface:supervisor",
            {"supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"},
        ),
    ]
    for priority, (group, members) in enumerate(groupby(programs, key=lambda program: program.group)):
        names = []
        for program in members:
            names.append(program.name)
            sections.append(_section(f"program:{program.name}", _program_settings(program, logs)))
        sections.append(_section(f"group:{group}", {"programs": ",".join(names), "priority": str(priority)}))
    return "\n".join(sections)


def _own_settings(directory: Path, logs: Path) -> dict[str, str]:
    settings = {
        "nodaemon": "true",
        "logfile": str(logs / "supervisor.log"),
        "logfile_maxbytes": "5MB",
        "logfile_backups": "1",
        "pidfile": str(directory / "supervisord.pid"),
    }
    # Confirms that running as root is intended. Otherwise supervisord warns at every start.
    return settings | ({"user": "root"} if os.geteuid() == 0 else {})


def _program_settings(program: Program, logs: Path) -> dict[str, str]:
    return {
        "command": shlex.join(program.command),
        "directory": str(program.directory),
        "environment": ",".join(f'{name}="{value}"' for name, value in program.environment.items()),
        "autostart": "false",
        "autorestart": "true",
        "startretries": "5",
        "stopsignal": program.stop_signal,
        "stopwaitsecs": str(program.stop_seconds),
        # A graceful stop goes to the main process only; a kill must reach its workers too.
        "stopasgroup": "false",
        "killasgroup": "true",
        "redirect_stderr": "true",
        "stdout_logfile": str(logs / f"{program.name}.log"),
        "stdout_logfile_maxbytes": "20MB",
        "stdout_logfile_backups": "3",
    }


def _section(name: str, settings: dict[str, str]) -> str:
    # supervisord expands %(name)s in values.
    lines: Iterable[str] = (f"{key}={value.replace('%', '%%')}\n" for key, value in settings.items() if value)
    return f"[{name}]\n{''.join(lines)}"


class SupervisorGoneError(Exception):
    """supervisord no longer responds: it was killed or has crashed."""


@dataclass(frozen=True)
class ProcessState:
    """The state of one process in supervisord. `pid` is 0 while it does not run."""

    name: str
    pid: int
    given_up: bool
    """The process exited too often right after its start, and is not started again."""


class Supervisor:
    """A running supervisord. It knows its programs, but has started none of them.

    Methods that call it raise SupervisorGoneError if it no longer responds.
    """

    def __init__(
        self, programs: Sequence[Program], environment: Mapping[str, str], *, directory: Path, logs: Path
    ) -> None:
        self._groups = {program.name: program.group for program in programs}
        self._log = logs / "supervisor.log"
        self._socket_link = directory / "rpc"
        self._socket_directory = _short_temporary_directory(self._socket_link)
        socket = self._socket_directory / "rpc"
        conf = directory / "supervisord.conf"
        # Private: keys that were given in the environment of the stack are in it.
        write_private_file(conf, supervisord_conf(programs, directory=directory, logs=logs, socket=socket))
        self._process = self._launch(conf, environment)
        self._rpc = cast(
            "Any", ServerProxy("http://localhost", SupervisorTransport(serverurl=f"unix://{socket}"))
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self) -> None:
        wait_until(
            self._answers,
            name="supervisord",
            log=self._log,
            seconds=SUPERVISOR_START_SECONDS,
            running=self.running,
        )

    def running(self) -> bool:
        return self._process.poll() is None

    def start(self, name: str) -> Callable[[], bool]:
        """Start a program. Return a function that tells whether this very process still runs.

        Raises StackError if supervisord cannot start it.
        """
        try:
            self._call("startProcess", f"{self._groups[name]}:{name}", False)
        except Fault as fault:
            problem = f"{name} cannot be started: {fault.faultString}."
            raise StackError(problem, f"See {self._log}.") from fault
        try:
            process = psutil.Process(self.states()[name].pid)
        except psutil.NoSuchProcess:
            return lambda: False
        return lambda: is_running(process)

    def stop_group(self, group: str) -> None:
        """Stop all processes of a group together, and wait until they have exited."""
        members = [name for name, its_group in self._groups.items() if its_group == group]
        while any(self._is_forked_copy(self.states()[name].pid) for name in members):
            time.sleep(POLL_SECONDS)
        self._call("stopProcessGroup", group, False)
        # supervisord updates its states once a second, and at every call.
        while any(self.states()[name].pid for name in members):
            time.sleep(POLL_SECONDS)

    def states(self) -> dict[str, ProcessState]:
        return {info["name"]: _state(info) for info in self._call("getAllProcessInfo")}

    def shut_down(self) -> None:
        """Stop supervisord, and the processes that may still run under it."""
        with contextlib.suppress(SupervisorGoneError, Fault):
            self._call("shutdown")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(SUPERVISOR_START_SECONDS)
        self._rpc("close")()
        _remove_socket_directory(self._socket_link)

    def _is_forked_copy(self, pid: int) -> bool:
        """Tell whether the process was forked, but has not become the program yet.

        It would handle the stop signal as supervisord does, and ignore it.
        """
        try:
            return bool(pid) and psutil.Process(pid).cmdline() == psutil.Process(self.pid).cmdline()
        except psutil.NoSuchProcess:
            return False

    def _launch(self, conf: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "supervisor.supervisord", "--nodaemon", f"--configuration={conf}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=dict(environment),
                # Ctrl-C in a terminal must reach only us, because we stop things in order.
                start_new_session=True,
            )

    def _answers(self) -> bool:
        try:
            self._call("getState")
        except SupervisorGoneError:
            return False
        return True

    def _call(self, method: str, *arguments: object) -> Any:
        try:
            return getattr(self._rpc.supervisor, method)(*arguments)
        except Fault:
            raise
        except BaseException as error:
            # Also after a signal: the next call must not read the rest of this response.
            self._rpc("close")()
            if isinstance(error, (OSError, http.client.HTTPException, RpcError)):
                raise SupervisorGoneError from error
            raise


def _state(info: Mapping[str, Any]) -> ProcessState:
    return ProcessState(info["name"], int(info["pid"]), info["state"] == ProcessStates.FATAL)


def _short_temporary_directory(link: Path) -> Path:
    """Create a private directory for the socket, and a link to it in the state directory."""
    _remove_socket_directory(link)
    usual = Path(tempfile.gettempdir())
    parent = usual if len(str(usual)) <= MAX_SOCKET_DIRECTORY_LENGTH else Path("/tmp")  # noqa: S108 - mkdtemp is private
    made = Path(tempfile.mkdtemp(prefix="mizan-", dir=parent))
    link.symlink_to(made)
    return made


def _remove_socket_directory(link: Path) -> None:
    """Remove the directory of the socket, also if an earlier run was killed."""
    if link.is_symlink():
        rmtree(link.readlink(), ignore_errors=True)
        link.unlink()
