"""What this process logs, as a service would, while a test looks."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from shared.platform.logs import LogFormat, configure_logging, write_gathered_lines


class LogStream(io.StringIO):
    def getvalue(self) -> str:
        """All that was logged, also what is written a moment later."""
        write_gathered_lines()
        return super().getvalue()


@contextmanager
def logged(fmt: LogFormat = "json", level: str = "info") -> Iterator[LogStream]:
    stream = LogStream()
    root = logging.getLogger()
    handlers, before = list(root.handlers), root.level
    configure_logging("shop", fmt, level, stream)
    try:
        yield stream
    finally:
        root.handlers[:] = handlers
        root.setLevel(before)
        structlog.reset_defaults()
