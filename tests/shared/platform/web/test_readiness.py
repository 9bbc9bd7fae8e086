"""The checks of /readyz run in parallel, within a time limit, and never pile up."""

import threading
import time

import pytest

from shared.platform.web.health import Readiness
from tests.waiting import eventually


def nothing_wrong() -> None:
    pass


def readiness_threads() -> int:
    return sum(thread.name.startswith("readiness-") for thread in threading.enumerate())


def failing_with(error: Exception) -> Readiness:
    def check() -> None:
        raise error

    return Readiness({"check": check})


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError("no route to host"), "no route to host"),
        (ValueError(), "ValueError"),  # no message: at least its name
        (OSError("first line\nsecond line"), "first line"),
        (
            OSError("postgresql://mizan:s3cret@db failed"),
            "postgresql://mizan:[redacted]@db failed",
        ),
        (OSError("x" * 1000), "x" * 200),
    ],
)
def test_reason_of_a_failed_check_is_short_and_redacted(error: Exception, reason: str) -> None:
    """Operators see the cause in one line, without secrets."""
    assert failing_with(error).results() == {"check": reason}


def test_failed_check_does_not_hide_other_results() -> None:
    """Each check has its own result."""

    def not_there() -> None:
        raise FileNotFoundError("not there")

    readiness = Readiness({"bad": not_there, "good": nothing_wrong})
    assert readiness.results() == {"bad": "not there", "good": "ok"}


def test_checks_run_in_parallel() -> None:
    """Two checks that wait for each other both succeed."""
    meeting = threading.Barrier(2, timeout=5)

    def meet() -> None:
        meeting.wait()

    assert Readiness({"a": meet, "b": meet}, time_limit_s=5).results() == {"a": "ok", "b": "ok"}


def test_hung_check_fails_in_time_uses_one_thread_and_recovers() -> None:
    """Further calls fail at once while it hangs; when it returns, it is ok again."""
    release = threading.Event()
    calls = []

    def hang() -> None:
        calls.append(1)
        release.wait(60)

    readiness = Readiness({"hung": hang, "good": nothing_wrong}, time_limit_s=0.2)
    expected = {"hung": "no answer within 0.2 s", "good": "ok"}
    assert readiness.results() == expected
    started = time.monotonic()
    assert all(readiness.results() == expected for _ in range(50))
    assert time.monotonic() - started < 5  # not 50 times the limit
    assert len(calls) == 1
    assert eventually(lambda: readiness_threads() == 1)
    release.set()
    eventually(lambda: readiness.results() == {"hung": "ok", "good": "ok"})


def test_concurrent_callers_share_a_run() -> None:
    """Twenty probes at once do not open twenty connections to the database."""
    running, most = 0, 0
    release = threading.Event()
    all_called = threading.Barrier(21)

    def slow() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        release.wait(5)
        running -= 1

    readiness = Readiness({"slow": slow}, time_limit_s=5)
    results: list[dict[str, str]] = []

    def call() -> None:
        all_called.wait(5)
        results.append(readiness.results())

    callers = [threading.Thread(target=call) for _ in range(20)]
    for caller in callers:
        caller.start()
    all_called.wait(5)
    eventually(lambda: most == 1)
    release.set()
    for caller in callers:
        caller.join()
    assert results == [{"slow": "ok"}] * 20
    assert most == 1


def test_check_that_exits_is_a_failure() -> None:
    """Even SystemExit in a check is reported, not taken for ok."""

    def leave() -> None:
        raise SystemExit

    assert Readiness({"odd": leave}).results() == {"odd": "SystemExit"}
