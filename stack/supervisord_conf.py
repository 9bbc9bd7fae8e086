"""The settings file of supervisord, written afresh at every start."""

import os
import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from stack.programs import Program


def supervisord_conf(programs: Sequence[Program], *, directory: Path, logs: Path, socket: Path) -> str:
    """The programs are in starting order; left to itself, supervisord stops the groups in reverse."""
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
    # Says that running as root is meant; without it supervisord warns at every start.
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
        # A graceful stop is the main process's to organise; a kill has to reach its workers too.
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
