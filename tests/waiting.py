"""Waits for a condition with a deadline, instead of sleeping."""

from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

T = TypeVar("T")


def error_text(check: Callable[[], None], kind: type[Exception]) -> str:
    """Return the text of the error of this kind that `check` raises, or an empty text if it raises none."""
    try:
        check()
    except kind as error:
        return str(error)
    return ""


def eventually(condition: Callable[[], T | None], within: float = 40.0, *, every: float = 0.02) -> T:
    """Return the first true value of `condition`. Fails if there is none within `within` seconds."""
    deadline = monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if monotonic() > deadline:
            raise AssertionError(f"did not come true within {within:g} s; last value: {value!r}")
        sleep(every)
