"""Every log line is one redacted event, as JSON or as text for a terminal."""

import io
import json
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
import structlog

from shared.platform.logs import LogFormat, configure_logging, log_context, log_uncaught_exceptions

CARD = "4242 4242 4242 4242"
Lines = Callable[[], list[dict[str, object]]]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def logging_as_it_was(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # pytest's handler raises when it cannot render a line
    monkeypatch.setattr(type(caplog.handler), "handleError", lambda _handler, _record: None)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def lines(stream: io.StringIO) -> Lines:
    configure_logging("api", "json", "info", stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_line_has_its_fields_in_a_fixed_order(lines: Lines) -> None:
    """Timestamp, level, service, logger and event, then the fields of the event."""
    structlog.get_logger("shared.outbox").info("row relayed", topic="webhooks.deliver", rows=3)
    (line,) = lines()
    assert list(line) == ["timestamp", "level", "service", "logger", "event", "topic", "rows"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", str(line.pop("timestamp")))
    assert line == {
        "level": "info",
        "service": "api",
        "logger": "shared.outbox",
        "event": "row relayed",
        "topic": "webhooks.deliver",
        "rows": 3,
    }


def test_standard_library_logging_is_formatted_and_redacted_alike(lines: Lines) -> None:
    """The message of a library is filled in, redacted, and has the ids of the context."""
    with log_context(request_id="r-1"):
        logging.getLogger("alembic.runtime").warning("card %s of %d", CARD, 2, extra={"phone": "x"})
    (line,) = lines()
    assert line["event"] == "card [redacted] of 2"
    assert (line["logger"], line["level"], line["request_id"]) == ("alembic.runtime", "warning", "r-1")
    assert line["phone"] == "[redacted]"


def fail_with(message: str) -> None:
    local_secret = "in a local variable"
    raise ValueError(message + local_secret[:0])


@pytest.mark.parametrize("fmt", ["json", "human"])
def test_traceback_is_redacted_and_shows_no_locals(stream: io.StringIO, fmt: LogFormat) -> None:
    """A traceback keeps its frames, without the card number and without local variables."""
    configure_logging("api", fmt, "info", stream)
    for report in (structlog.get_logger("a").exception, logging.getLogger("b").exception):
        try:
            fail_with(f"card {CARD}")
        except ValueError:
            report("it failed")
    written = stream.getvalue()
    assert written.count("in fail_with") == 2
    assert written.count("ValueError: card [redacted]") == 2
    assert CARD not in written
    assert "in a local variable" not in written.replace('local_secret = "in a local variable"', "")


def test_context_ids_are_on_every_line_inside_the_block_only(lines: Lines) -> None:
    """Blocks can be nested; the previous ids are restored when a block ends, also by an exception."""
    log = structlog.get_logger("a")

    def fail_inside() -> None:
        with log_context(message_id="m-2", request_id="r-2"):
            log.info("inner")
            raise KeyError

    with log_context(message_id="m-1"):
        with pytest.raises(KeyError):
            fail_inside()
        log.info("outer")
    log.info("outside")
    seen = [(line.get("message_id"), line.get("request_id")) for line in lines()]
    assert seen == [("m-2", "r-2"), ("m-1", None), (None, None)]


@pytest.mark.parametrize(
    "value",
    [
        "lone \ud800 surrogate",
        "NUL \0 and \x1b[31m escape",
        "two\nlines\r\nand \u2028 \u0085 more",
        b"bytes \xff\n",
        {"\ud800\n": b"\0"},  # in a key
        float("nan"),  # which JSON does not know
        object(),
    ],
)
def test_one_event_is_one_json_line(stream: io.StringIO, lines: Lines, value: object) -> None:
    """No event, field or argument can break a line."""
    structlog.get_logger("a").info(str(value), field=value, beside=1)
    logging.getLogger("b").info("%s", value)
    assert stream.getvalue().count("\n") == 2
    assert stream.getvalue().isascii()
    first, _ = lines()
    assert first["beside"] == 1
    json.loads(stream.getvalue().splitlines()[0], parse_constant=pytest.fail)


@pytest.mark.parametrize(
    "log_it", [lambda: structlog.get_logger("a").info, lambda: logging.getLogger("a").info]
)
def test_wrong_arguments_are_logged_not_raised(
    lines: Lines, log_it: Callable[[], Callable[..., None]]
) -> None:
    """A message that does not fit its arguments is still logged, with both."""
    log_it()("%d rows", "many")
    (line,) = lines()
    assert (line["event"], line["arguments"]) == ("%d rows", ["many"])


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError(CARD)


def test_line_that_cannot_be_rendered_is_reported_without_its_content(lines: Lines) -> None:
    """The caller continues, and the report of the lost line contains no secret."""
    logging.getLogger("a").info(Hostile())
    (line,) = lines()
    assert line["event"] == "log line lost"
    assert CARD not in json.dumps(line)


def test_closed_stream_does_not_raise_in_the_caller(stream: io.StringIO, lines: Lines) -> None:
    """A log pipe that is no longer read is no reason to fail a payment."""
    stream.close()
    structlog.get_logger("a").info("into the void")


def test_auto_format_is_human_on_a_terminal_only() -> None:
    """It is coloured on a terminal and JSON otherwise."""
    terminal, pipe = Terminal(), io.StringIO()
    configure_logging("api", "auto", "info", terminal)
    structlog.get_logger("a").info("hello \x1b[2J \ud800", phone="x")
    configure_logging("api", "auto", "info", pipe)
    structlog.get_logger("a").info("hello")
    assert "\x1b[" in terminal.getvalue()
    assert "hello \\x1b[2J \\ud800" in terminal.getvalue()
    assert "[redacted]" in terminal.getvalue()
    assert json.loads(pipe.getvalue())["event"] == "hello"


def test_level_applies_to_structlog_and_standard_logging(lines: Lines) -> None:
    """Below the level nothing is written."""
    structlog.get_logger("a").debug("no")
    logging.getLogger("b").debug("no")
    assert lines() == []


def test_configuring_again_replaces_the_stream(stream: io.StringIO, lines: Lines) -> None:
    """Lines are not written twice."""
    configure_logging("api", "json", "info", stream)
    structlog.get_logger("a").info("once")
    assert len(lines()) == 1


def test_uncaught_exceptions_are_redacted(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exception that ends a thread or the process is logged like every other line."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    log_uncaught_exceptions()
    thread = threading.Thread(target=fail_with, args=[CARD], name="relay")
    thread.start()
    thread.join()
    sys.excepthook(ValueError, ValueError(CARD), None)
    of_thread, of_process = lines()
    assert (of_thread["event"], of_thread["thread_name"]) == ("thread ends", "relay")
    assert "ValueError: [redacted]" in str(of_thread["exception"])
    assert (of_process["event"], of_process["level"]) == ("process ends", "critical")
    assert CARD not in json.dumps([of_thread, of_process])
