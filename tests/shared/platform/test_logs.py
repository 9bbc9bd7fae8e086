"""Every log line is one redacted event, in the shape that people or machines want."""

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
    # pytest listens too, and raises when it cannot render a line
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


def test_json_line_has_the_agreed_fields_in_order(lines: Lines) -> None:
    """A line tells when, how bad, which service, which logger and what, then the fields."""
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


def test_standard_library_logging_takes_the_same_way(lines: Lines) -> None:
    """A library's message is filled in, redacted, and carries the ids of the moment."""
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
    """A traceback keeps its frames, loses the card number, and never had the local variables."""
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


def test_context_reaches_every_line_inside_and_none_outside(lines: Lines) -> None:
    """Ids nest, and are as before when their block ends, however it ends."""
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
    """Nothing that is logged can break a line, as event, as field or as argument."""
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
    """A message that does not fit its arguments is still told, with both."""
    log_it()("%d rows", "many")
    (line,) = lines()
    assert (line["event"], line["arguments"]) == ("%d rows", ["many"])


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError(CARD)


def test_a_line_that_cannot_be_rendered_is_reported_without_its_content(lines: Lines) -> None:
    """The caller goes on, and what is told about the lost line holds no secret."""
    logging.getLogger("a").info(Hostile())
    (line,) = lines()
    assert line["event"] == "log line lost"
    assert CARD not in json.dumps(line)


def test_a_closed_stream_does_not_reach_the_caller(stream: io.StringIO, lines: Lines) -> None:
    """Logging to a pipe nobody reads any more is no reason to fail a payment."""
    stream.close()
    structlog.get_logger("a").info("into the void")


def test_human_line_on_a_terminal_only() -> None:
    """`auto` is coloured for a terminal and JSON for anything else."""
    terminal, pipe = Terminal(), io.StringIO()
    configure_logging("api", "auto", "info", terminal)
    structlog.get_logger("a").info("hello \x1b[2J \ud800", phone="x")
    configure_logging("api", "auto", "info", pipe)
    structlog.get_logger("a").info("hello")
    assert "\x1b[" in terminal.getvalue()
    assert "hello \\x1b[2J \\ud800" in terminal.getvalue()
    assert "[redacted]" in terminal.getvalue()
    assert json.loads(pipe.getvalue())["event"] == "hello"


def test_level_holds_for_both_ways(lines: Lines) -> None:
    """Below the level nothing is written."""
    structlog.get_logger("a").debug("no")
    logging.getLogger("b").debug("no")
    assert lines() == []


def test_setting_up_again_replaces_the_stream(stream: io.StringIO, lines: Lines) -> None:
    """A second set-up does not make every line appear twice."""
    configure_logging("api", "json", "info", stream)
    structlog.get_logger("a").info("once")
    assert len(lines()) == 1


def test_uncaught_exceptions_are_redacted(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends a thread or the process is logged like everything else."""
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
