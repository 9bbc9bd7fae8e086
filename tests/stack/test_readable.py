"""Log lines on the terminal."""

import json

import pytest

from stack.readable import readable


def test_json_line_becomes_words() -> None:
    """Time of day, level and what happened come first, then the rest; the service is the prefix's business."""
    line = json.dumps(
        {
            "timestamp": "2026-11-15T02:37:01.587588Z",
            "level": "warning",
            "service": "api",
            "event": "slow answer",
            "request_id": "r-1",
        }
    )
    assert readable(line) == "02:37:01.587 WARNING slow answer request_id=r-1"


def test_traceback_stands_on_its_own_lines() -> None:
    """An exception is not squeezed into one line."""
    line = json.dumps({"event": "failed", "level": "error", "exception": "Traceback:\n  here"})
    assert readable(line).endswith("failed\nTraceback:\n  here")


@pytest.mark.parametrize("line", ["plain words", "{not json", "[1]", '{"no": "event"}', ""])
def test_other_lines_stay(line: str) -> None:
    """What is not a log record of ours is shown as it is."""
    assert readable(line) == line
