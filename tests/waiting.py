"""Waiting for a condition with a deadline, instead of sleeping."""

from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

T = TypeVar("T")


def complaint(check: Callable[[], None], kind: type[Exception]) -> str:
    """What a check for /readyz raises, as text; empty when it is content."""
    try:
        check()
    except kind as error:
        return str(error)
    return ""


def eventually(condition: Callable[[], T], within: float = 40.0, *, every: float = 0.02) -> T:
    """The first true value of `condition`; fails when there is none in time."""
    deadline = monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if monotonic() > deadline:
            raise AssertionError(f"did not come true within {within:g} s; last value: {value!r}")
        sleep(every)
