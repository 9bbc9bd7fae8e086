"""The job runner: each job runs alone, shows when it fails, and is retried."""

from threading import Event

import pytest
from prometheus_client import REGISTRY

from services.scheduler import job_runner
from services.scheduler.job_runner import JobFailingError
from tests.scheduler.running_jobs import running_jobs
from tests.waiting import error_text, eventually


class Fake:
    """A job that counts its turns, and fails or hangs while told to."""

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


def test_a_failing_job_is_seen_and_tried_again() -> None:
    """/readyz and the metrics tell of it, while the process and the other jobs live."""
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


def test_a_slow_job_holds_up_no_other() -> None:
    """Each has a thread of its own."""
    slow, quick = Fake("slow"), Fake("quick")
    slow.go_on.clear()
    with running_jobs(slow, quick):
        eventually(lambda: quick.turns > 20)
        assert slow.turns == 1
        slow.go_on.set()


def test_a_job_that_hangs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread lives and nothing failed, but nothing gets done either."""
    monkeypatch.setattr(job_runner, "HANG_LIMIT_S", 0.2)
    slow = Fake("hanging")
    slow.go_on.clear()
    with running_jobs(slow) as (runner,):
        eventually(lambda: error_text(runner.check, JobFailingError))
        with pytest.raises(JobFailingError, match="has been running for"):
            runner.check()
        slow.go_on.set()
        eventually(lambda: not error_text(runner.check, JobFailingError))
