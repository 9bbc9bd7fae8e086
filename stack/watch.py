"""The stack while it is up: log lines to the terminal, restarts noticed and told, stack.json kept true."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from stack.console import Console
from stack.log_tail import LogTail
from stack.programs import Program
from stack.readable import readable
from stack.supervision import ProcessState, Supervision
from stack.waiting import last_lines

LOOK_SECONDS = 0.2


class Watch:
    """Follows the programs until somebody wants them to stop or supervisord dies."""

    def __init__(
        self,
        supervision: Supervision,
        programs: Sequence[Program],
        logs: Path,
        console: Console,
        write_pids: Callable[[Mapping[str, ProcessState]], None],
    ) -> None:
        self._supervision = supervision
        self._console = console
        self._logs = logs
        self._write_pids = write_pids
        self._tails = {program.name: LogTail(logs / f"{program.name}.log") for program in programs}
        self._known = supervision.states()
        self._last_pid = {name: state.pid for name, state in self._known.items()}
        write_pids(self._known)

    def follow(self, stop_wanted: Callable[[], bool]) -> None:
        """Raises SupervisorGoneError when supervisord is gone."""
        while not stop_wanted():
            self.print_new_lines()
            self.compare(self._supervision.states())
            time.sleep(LOOK_SECONDS)

    def print_new_lines(self) -> None:
        for name, tail in self._tails.items():
            for line in tail.new_lines():
                for part in readable(line).split("\n"):
                    self._console.log_line(name, part)

    def close(self) -> None:
        for tail in self._tails.values():
            tail.close()

    def compare(self, now: dict[str, ProcessState]) -> None:
        before, self._known = self._known, now
        if now != before:
            self._write_pids(now)
        for name, state in now.items():
            if state.given_up and not before[name].given_up:
                self._tell_given_up(name)
            elif not state.pid and before[name].pid:
                self._console.shout(f"{name} (pid {before[name].pid}) has ended; it is being restarted")
            elif state.pid and state.pid != self._last_pid[name]:
                self._console.shout(f"{name} was restarted (pid {self._last_pid[name]} → {state.pid})")
            self._last_pid[name] = state.pid or self._last_pid[name]

    def _tell_given_up(self, name: str) -> None:
        log = self._logs / f"{name}.log"
        self._console.shout(
            f"{name} ends right after each start and is not restarted any more. The end of its log:"
        )
        self._console.show(last_lines(log))
        self._console.say(
            f"Everything else runs on. Correct the cause (the whole log: {log}) and start again."
        )
