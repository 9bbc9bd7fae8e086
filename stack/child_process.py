"""A server as a plain child process that a test can kill, freeze and start again."""

import signal
import subprocess
from pathlib import Path

from stack.family import family_of, send, wait_gone
from stack.guardian import Guardian

STOP_SECONDS = 30


class ChildProcess:
    """Runs `command`, with its output in `log`, until it is stopped or the process that made it dies."""

    def __init__(
        self,
        command: list[str],
        *,
        log: Path,
        guardian: Guardian,
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        self.log = log
        self._command = command
        self._guardian = guardian
        self._stop_signal = stop_signal
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        assert not self.running(), "already running"
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                start_new_session=True,
            )
        self._guardian.guard(self._process.pid)

    def stop(self) -> None:
        """Ask it to end and wait; what does not end in time is killed."""
        self.ask_to_stop()
        self.wait_stopped()

    def ask_to_stop(self) -> None:
        if self._process is not None and self.running():
            self.thaw()
            self._process.send_signal(self._stop_signal)

    def wait_stopped(self) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL it and the processes it started, and wait until all are gone."""
        if self._process is None:
            return
        family = family_of(self.pid)
        send(signal.SIGKILL, family)
        self._process.wait()
        wait_gone(family, STOP_SECONDS)

    def freeze(self) -> None:
        """SIGSTOP it: it keeps its connections and answers nothing."""
        send(signal.SIGSTOP, family_of(self.pid))

    def thaw(self) -> None:
        send(signal.SIGCONT, family_of(self.pid))
