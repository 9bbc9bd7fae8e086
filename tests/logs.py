"""Logs in tests: those of other processes, shown when a test fails, and the log of this process, captured."""

import io
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from shared.platform.logs import LogFormat, configure_logging, flush_buffered_logs

_LINES = 40

_attached: list[Path] = []
_lengths: dict[Path, int] = {}
"""The size of each log when the test began."""


def attach_log(path: Path) -> None:
    """Show what this log, or the logs in this directory, gain during a test that fails."""
    _attached.append(path)
    _lengths.update({file: file.stat().st_size for file in _files(path)})


def start_test() -> None:
    """Remember how long the logs are, so that `lines_of_test` returns only what follows."""
    _attached[:] = [path for path in _attached if path.exists()]
    _lengths.clear()
    _lengths.update({file: file.stat().st_size for path in _attached for file in _files(path)})


def lines_of_test() -> list[tuple[str, str]]:
    """Return the name of each log that has grown during the test, and the last lines that were added."""
    found = []
    for file in sorted({file for path in _attached for file in _files(path)}):
        with file.open("rb") as log:
            log.seek(_lengths.get(file, 0))
            # Kafka logs each partition that it makes or removes.
            lines = [
                line for line in log.read().decode(errors="replace").splitlines() if " INFO " not in line
            ]
        if lines:
            found.append((file.name, "\n".join(lines[-_LINES:])))
    return found


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return list(path.glob("*.log"))
    return [path] if path.exists() else []


class LogStream(io.StringIO):
    def getvalue(self) -> str:
        """Return everything logged so far, also lines that are still buffered."""
        flush_buffered_logs()
        return super().getvalue()


@contextmanager
def capture_logs(fmt: LogFormat = "json", level: str = "info") -> Iterator[LogStream]:
    stream = LogStream()
    with restore_logging():
        configure_logging("shop", fmt, level, stream)
        yield stream


@contextmanager
def restore_logging() -> Iterator[None]:
    """Undo what the start of a service changes in this process: its log, and what happens with uncaught exceptions."""
    root = logging.getLogger()
    handlers, before = list(root.handlers), root.level
    hooks = sys.excepthook, threading.excepthook
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(before)
        structlog.reset_defaults()
        sys.excepthook, threading.excepthook = hooks
