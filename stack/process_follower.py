"""Follows a running stack: prints the log lines of its processes and reports their restarts."""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from stack.output import Console
from stack.processes import last_lines
from stack.programs import Program
from stack.supervisor import ProcessState, Supervisor

POLL_INTERVAL_SECONDS = 0.2
STATES_INTERVAL_SECONDS = 1.0
"""Rarely, because asking supervisord costs more than reading all logs."""

MAX_READ_BYTES = 256 * 1024


class LogTail:
    """Reads the lines that were added to a log since the tail was created, also across rotations."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rest = b""
        self._file = self._open()
        if self._file is not None:
            self._file.seek(0, os.SEEK_END)

    def new_lines(self) -> list[str]:
        self._file = self._file or self._open()
        if self._file is None:
            return []
        content = self._file.read(MAX_READ_BYTES)
        if not content and self._was_rotated(self._file):
            self.close()
        *lines, self._rest = (self._rest + content).split(b"\n")
        return [line.decode(errors="replace").rstrip("\r") for line in lines]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO | None:
        try:
            return self._path.open("rb")
        except FileNotFoundError:
            return None

    def _was_rotated(self, file: BinaryIO) -> bool:
        try:
            now = self._path.stat()
        except FileNotFoundError:
            return False
        return now.st_ino != os.fstat(file.fileno()).st_ino or now.st_size < file.tell()


def format_log_line(line: str) -> str:
    if not line.startswith("{"):
        return line
    try:
        fields = json.loads(line)
    except ValueError:
        return line
    if not isinstance(fields, dict) or "event" not in fields:
        return line
    # The name of the process is printed before the line already.
    fields.pop("service", None)
    moment, level = str(fields.pop("timestamp", "")), str(fields.pop("level", ""))
    words = [moment[11:23], level.upper().ljust(7), str(fields.pop("event"))]
    exception = fields.pop("exception", None)
    words += [f"{name}={value}" for name, value in fields.items()]
    return " ".join(words) + (f"\n{exception}" if exception else "")


class ProcessFollower:
    """Prints new log lines, reports restarts, and updates stack.json, until the stack stops or supervisord dies."""

    def __init__(
        self,
        supervisor: Supervisor,
        programs: Sequence[Program],
        logs: Path,
        console: Console,
        write_pids: Callable[[Mapping[str, ProcessState]], None],
    ) -> None:
        self._supervisor = supervisor
        self._console = console
        self._logs = logs
        self._write_pids = write_pids
        self._tails = {program.name: LogTail(logs / f"{program.name}.log") for program in programs}
        self._known = supervisor.states()
        self._last_pid = {name: state.pid for name, state in self._known.items()}
        write_pids(self._known)

    def follow(self, should_stop: Callable[[], bool]) -> None:
        """Follow the processes until `should_stop()`. Raises SupervisorGoneError if supervisord dies."""
        ask_at = 0.0
        while not should_stop():
            self.print_new_lines()
            if time.monotonic() >= ask_at:
                self.report_changes(self._supervisor.states())
                ask_at = time.monotonic() + STATES_INTERVAL_SECONDS
            time.sleep(POLL_INTERVAL_SECONDS)

    def print_new_lines(self) -> None:
        for name, tail in self._tails.items():
            for line in tail.new_lines():
                for part in format_log_line(line).split("\n"):
                    self._console.log_line(name, part)

    def close(self) -> None:
        for tail in self._tails.values():
            tail.close()

    def report_changes(self, now: dict[str, ProcessState]) -> None:
        before, self._known = self._known, now
        if now != before:
            self._write_pids(now)
        for name, state in now.items():
            if state.given_up and not before[name].given_up:
                self._report_given_up(name)
            elif not state.pid and before[name].pid:
                self._console.warn(f"{name} (pid {before[name].pid}) exited; it is being restarted")
            elif state.pid and state.pid != self._last_pid[name]:
                self._console.warn(f"{name} was restarted (pid {self._last_pid[name]} → {state.pid})")
            self._last_pid[name] = state.pid or self._last_pid[name]

    def _report_given_up(self, name: str) -> None:
        log = self._logs / f"{name}.log"
        self._console.warn(
            f"{name} exits right after each start and is not restarted any more. The end of its log:"
        )
        self._console.print(last_lines(log))
        self._console.info(f"Everything else keeps running. Fix the cause (full log: {log}) and start again.")
