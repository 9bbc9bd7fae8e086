"""Sets up logging: one redacted line per event, as JSON for machines or coloured for people.

The standard library's logging takes the same way, so gunicorn, alembic and the like are covered too.
"""

import json
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from multiprocessing.util import Finalize
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any, Literal, TextIO

import msgspec
import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import EventDict, WrappedLogger

from shared.platform.redaction import redact

_MOMENT_S = 0.05


class GatheredLines:
    """Nothing is lost when the process ends by itself; killed, it takes the last moment's lines along."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        # Where nobody reads what we write, the oldest are lost rather than all our memory.
        self._lines: deque[str] = deque(maxlen=20_000)
        self._some = Event()
        self._lock = Lock()
        self._writer: Thread | None = None

    def add(self, line: str) -> None:
        self._lines.append(line)
        if not self._some.is_set():
            self._some.set()
            if self._writer is None:
                self._start()

    def flush(self) -> None:
        with self._lock:
            self._some.clear()
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            if lines:
                self._write("\n".join(lines))

    def _start(self) -> None:
        with self._lock:
            if self._writer is None:
                self._writer = Thread(target=self._run, name="log-lines", daemon=True)
                self._writer.start()
                # Also run where atexit is not: at the end of a process that multiprocessing started.
                Finalize(None, self.flush, exitpriority=0)

    def _run(self) -> None:
        pause = Event()
        while True:
            self._some.wait()
            pause.wait(_MOMENT_S)
            self.flush()


LogFormat = Literal["json", "human", "auto"]

_FIRST_FIELDS = ("timestamp", "level", "service", "logger", "event")
_UNPRINTABLE = {code: f"\\x{code:02x}" for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: "\\x7f"}


def configure_logging(service: str, fmt: LogFormat, level: str, stream: TextIO | None = None) -> None:
    """Send everything that is logged in this process to `stream`, standard error unless given."""
    target = stream or sys.stderr
    is_human = fmt == "human" or (fmt == "auto" and target.isatty())
    handler = _LineHandler(target, service, is_human=is_human)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder()],
            pass_foreign_args=True,
            use_get_message=False,
            processors=[
                _fill_in_arguments,
                structlog.contextvars.merge_contextvars,
                _Describe(service),
                ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _redact_event,
                _HumanLine() if is_human else _json_line,
            ],
        )
    )
    root = logging.getLogger()
    for old in [old for old in root.handlers if isinstance(old, _LineHandler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def log_plainly(logger: str, event: str, fields: Mapping[str, object]) -> None:
    """A line at level info for what is many and cannot hold a secret, at a tenth of the usual cost.

    It is not searched for secrets, and written a moment later. Its texts are plain ASCII.
    """
    if not logging.getLogger(logger).isEnabledFor(logging.INFO):
        return
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _LineHandler) and not handler.is_human:
            now = datetime.now(UTC).isoformat(timespec="microseconds")[:-6] + "Z"
            first = {"timestamp": now, "level": "info", "service": handler.service, "logger": logger}
            handler.gathered.add(msgspec.json.encode({**first, "event": event, **fields}).decode())
            return
    structlog.get_logger(logger).info(event, **fields)


def write_gathered_lines() -> None:
    """Now, not in a moment."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _LineHandler):
            handler.gathered.flush()


def log_uncaught_exceptions() -> None:
    """Give what would end a thread or the process to the logger, because Python prints it unredacted."""

    def of_process(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            return
        logging.getLogger("uncaught").critical("process ends", exc_info=(kind, error, trace))

    def of_thread(failed: threading.ExceptHookArgs) -> None:
        if failed.exc_value is None or issubclass(failed.exc_type, SystemExit):
            return
        trace = (failed.exc_type, failed.exc_value, failed.exc_traceback)
        name = failed.thread.name if failed.thread else None
        logging.getLogger("uncaught").error("thread ends", exc_info=trace, extra={"thread_name": name})

    sys.excepthook = of_process
    threading.excepthook = of_thread


@contextmanager
def log_context(**ids: object) -> Iterator[None]:
    """Put `request_id`, `message_id` and the like on every line logged inside, also by libraries."""
    with structlog.contextvars.bound_contextvars(**ids):
        yield


class _LineHandler(logging.StreamHandler[TextIO]):
    """Writes lines; a line that cannot be written is replaced or lost, never raised into the caller."""

    def __init__(self, stream: TextIO, service: str, *, is_human: bool) -> None:
        super().__init__(stream)
        self.service = service
        self.is_human = is_human
        self.gathered = GatheredLines(self.write)

    def write(self, line: str) -> None:
        """Several threads write, and a line must stay whole."""
        with suppress(Exception), self.lock or nullcontext():
            self.stream.write(line + self.terminator)
            self.stream.flush()

    def format(self, record: logging.LogRecord) -> str:
        encoding = getattr(self.stream, "encoding", None) or "utf-8"
        return super().format(record).encode(encoding, "backslashreplace").decode(encoding)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  the name logging calls
        # The inherited one prints the record's arguments, which nobody has redacted.
        error = sys.exc_info()[0]
        with suppress(Exception):
            line = {"level": "error", "logger": record.name, "event": "log line lost", "error": str(error)}
            self.write(json.dumps(line))


def _fill_in_arguments(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """`%` formatting that keeps message and arguments when they do not fit together."""
    arguments = event.pop("positional_args", None)
    if not arguments:
        return event
    try:
        event["event"] = str(event["event"]) % arguments
    except (TypeError, ValueError, KeyError):
        event["arguments"] = arguments
    return event


class _Describe:
    def __init__(self, service: str) -> None:
        self._service = service

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        record: logging.LogRecord = event["_record"]
        event["timestamp"] = (
            datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")[:-6] + "Z"
        )
        event["level"] = record.levelname.lower()
        event["service"] = self._service
        event["logger"] = record.name
        return event


def _redact_event(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    redacted = redact(event)
    assert isinstance(redacted, dict)
    return redacted


def _json_line(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    ordered = {name: event.pop(name) for name in _FIRST_FIELDS if name in event}
    ordered.update(event)
    try:
        return _strict_json(ordered)
    except ValueError:
        return _strict_json({name: _without_nan(value) for name, value in ordered.items()})


def _without_nan(value: object) -> object:
    try:
        _strict_json(value)
    except ValueError:
        return str(value)
    return value


def _strict_json(value: object) -> str:
    """Pure ASCII, so that neither a lone surrogate nor a line separator can break a line."""
    return json.dumps(value, allow_nan=False)


class _HumanLine:
    def __init__(self) -> None:
        self._render = structlog.dev.ConsoleRenderer(
            colors=True, exception_formatter=structlog.dev.plain_traceback, pad_event_to=40
        )

    def __call__(self, logger: WrappedLogger, method: str, event: MutableMapping[str, Any]) -> str:
        printable = {name: _printable(value) for name, value in event.items()}
        return str(self._render(logger, method, printable))


def _printable(value: object) -> object:
    return value.translate(_UNPRINTABLE) if isinstance(value, str) else value
