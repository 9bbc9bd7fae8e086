"""The job runner: each job runs in its own thread, reports when it fails, and is retried."""

from threading import Event

import pytest
from prometheus_client import REGISTRY

from services.scheduler import job_runner
from services.scheduler.job_runner import JobFailingError
from tests.scheduler.running_jobs import running_jobs
from tests.waiting import error_text, eventually


class Fake:
    """A job that counts its runs, and fails or hangs on request."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.turns = 0
        self.failing = False
        self.go_on = Event()
        self.go_on.set()
        self.closed = False

    def run_once(self) -> float:
        self.turns += 1
        self.go_on.wait(30)
        if self.failing:
            raise RuntimeError("no luck today")
        return 0.01

    def close(self) -> None:
        self.closed = True


def test_failing_job_is_reported_and_retried() -> None:
    """By the check of /readyz and by the metrics, while the process and other jobs continue."""
    bad, good = Fake("bad"), Fake("good")
    bad.failing = True
    with running_jobs(bad, good) as (bad_runner, good_runner):
        eventually(lambda: bad.turns >= 3)
        with pytest.raises(JobFailingError, match="no luck today"):
            bad_runner.check()
        assert REGISTRY.get_sample_value("mizan_scheduled_job_failing", {"job_name": "bad"}) == 1
        good_runner.check()
        bad.failing = False
        eventually(lambda: not error_text(bad_runner.check, JobFailingError))
        assert REGISTRY.get_sample_value("mizan_scheduled_job_failing", {"job_name": "bad"}) == 0
    assert bad.closed
    assert good.closed


def test_slow_job_does_not_delay_other_jobs() -> None:
    """Each job has its own thread."""
    slow, quick = Fake("slow"), Fake("quick")
    slow.go_on.clear()
    with running_jobs(slow, quick):
        eventually(lambda: quick.turns > 20)
        assert slow.turns == 1
        slow.go_on.set()


def test_hanging_job_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread is alive and nothing failed, but it makes no progress."""
    monkeypatch.setattr(job_runner, "HANG_LIMIT_S", 0.2)
    slow = Fake("hanging")
    slow.go_on.clear()
    with running_jobs(slow) as (runner,):
        eventually(lambda: error_text(runner.check, JobFailingError))
        with pytest.raises(JobFailingError, match="has been running for"):
            runner.check()
        slow.go_on.set()
        eventually(lambda: not error_text(runner.check, JobFailingError))
