"""Runs each scheduled job in a thread of its own, so that a slow or failing job delays no other.

Failures show in the metrics and in /readyz.
"""

import logging
from collections.abc import Sequence
from threading import Event, Thread
from time import monotonic
from typing import Protocol

from prometheus_client import Counter, Gauge

from shared.platform.backoff import backoff_delay

RUNS = Counter("mizan_scheduled_job_runs", "Runs of a scheduled job", ["job_name", "outcome"])
FAILING = Gauge("mizan_scheduled_job_failing", "1 if the last run of the scheduled job failed", ["job_name"])

_log = logging.getLogger(__name__)
HANG_LIMIT_S = 30.0
_STOP_TIMEOUT_S = 10


class Job(Protocol):
    @property
    def name(self) -> str: ...

    def run_once(self) -> float:
        """Do what is due now. Return the seconds until the next call."""

    def close(self) -> None:
        """Called in the job's own thread after its last run."""


class JobFailingError(Exception):
    """The last run of a job failed or hangs; it is retried with growing pauses."""


class JobRunner:
    def __init__(self, job: Job, stop: Event) -> None:
        self._job = job
        self._stop = stop
        self._failure: str | None = None
        self._run_started: float | None = None
        self.thread = Thread(target=self._run, name=job.name, daemon=True)

    @property
    def name(self) -> str:
        return self._job.name

    def check(self) -> None:
        """Raise JobFailingError while the job fails or hangs, or if its thread has ended. For /readyz."""
        if self._failure is not None:
            raise JobFailingError(self._failure)
        started = self._run_started
        if started is not None and monotonic() - started > HANG_LIMIT_S:
            raise JobFailingError(f"has been running for {monotonic() - started:.0f} s")
        if not self.thread.is_alive():
            raise JobFailingError("its thread has ended")

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            self._run_started = monotonic()
            try:
                pause = self._job.run_once()
            except Exception as error:  # noqa: BLE001  the loop's edge: logged, shown and retried
                if self._stop.is_set():
                    break
                failures += 1
                pause = backoff_delay(failures)
                # The metrics first: whoever sees the failure in `check` finds it there, too.
                RUNS.labels(self.name, "failed").inc()
                FAILING.labels(self.name).set(1)
                self._failure = f"failed {failures} times in a row: {error}"
                _log.exception("job %s failed, retrying in %.1f s", self.name, pause)
            else:
                RUNS.labels(self.name, "ok").inc()
                FAILING.labels(self.name).set(0)
                failures, self._failure = 0, None
            self._run_started = None
            self._stop.wait(pause)
        self._job.close()


def start_jobs(jobs: Sequence[Job], stop: Event) -> list[JobRunner]:
    runners = [JobRunner(job, stop) for job in jobs]
    for runner in runners:
        runner.thread.start()
    return runners


def wait_for_jobs(runners: Sequence[JobRunner]) -> None:
    for runner in runners:
        runner.thread.join(_STOP_TIMEOUT_S)
