"""Duties at work in their threads, until the test has seen enough."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

from services.scheduler.duties import Duty, DutyRunner, start_duties, wait_for_duties


@contextmanager
def at_work(*duties: Duty, stop: Event | None = None) -> Iterator[list[DutyRunner]]:
    """`stop` is for duties that know it too."""
    stop = stop or Event()
    runners = start_duties(duties, stop)
    try:
        yield runners
    finally:
        stop.set()
        wait_for_duties(runners)
