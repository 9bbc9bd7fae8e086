"""Runs jobs in their threads until the test ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

from services.scheduler.job_runner import Job, JobRunner, start_jobs, wait_for_jobs


@contextmanager
def running_jobs(*jobs: Job, stop: Event | None = None) -> Iterator[list[JobRunner]]:
    """Run the jobs; pass `stop` if a job itself needs the event that stops it."""
    stop = stop or Event()
    runners = start_jobs(jobs, stop)
    try:
        yield runners
    finally:
        stop.set()
        wait_for_jobs(runners)
