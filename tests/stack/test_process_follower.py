"""Following a running stack: restarts are reported, and log lines are printed."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from stack.output import Console
from stack.process_follower import LogTail, ProcessFollower, format_log_line
from stack.programs import Program
from stack.supervisor import ProcessState, Supervisor

PROGRAM = Program("api", "api", ("api",))


class SupervisorStub:
    """A stand-in for supervisord."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def states(self) -> dict[str, ProcessState]:
        return state(self._pid)


def state(pid: int, *, given_up: bool = False) -> dict[str, ProcessState]:
    return {"api": ProcessState("api", pid, given_up)}


@pytest.fixture
def written() -> list[int]:
    """The pids that were written to stack.json, in order."""
    return []


@pytest.fixture
def follower(tmp_path: Path, written: list[int]) -> ProcessFollower:
    def write(states: Mapping[str, ProcessState]) -> None:
        written.append(states["api"].pid)

    supervisor = cast("Supervisor", SupervisorStub(100))
    return ProcessFollower(supervisor, [PROGRAM], tmp_path, Console(colour=False), write)


def test_unchanged_process_is_not_reported(
    follower: ProcessFollower, written: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    follower.report_changes(state(100))
    assert capsys.readouterr().out == ""
    assert written == [100]


def test_restart_is_reported_with_both_pids(
    follower: ProcessFollower, written: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit and restart are reported, also if a poll falls between them, and stack.json is updated."""
    follower.report_changes(state(0))
    follower.report_changes(state(200))
    out = capsys.readouterr().out
    assert "api (pid 100) exited" in out
    assert "api was restarted (pid 100 → 200)" in out
    assert written == [100, 0, 200]


def test_process_that_is_not_restarted_any_more_is_reported_once_with_its_log(
    follower: ProcessFollower, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All other processes keep running."""
    (tmp_path / "api.log").write_text("cannot read the key file\n")
    follower.report_changes(state(0, given_up=True))
    follower.report_changes(state(0, given_up=True))
    out = capsys.readouterr().out
    assert out.count("not restarted any more") == 1
    assert "cannot read the key file" in out
    assert "Everything else keeps running" in out


def test_log_lines_are_printed_with_the_name_of_their_process(
    follower: ProcessFollower, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "api.log").write_text("hello\n")
    follower.print_new_lines()
    follower.close()
    assert capsys.readouterr().out == "api | hello\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def follow(log: Path) -> Iterator[Callable[[], LogTail]]:
    """Return a function that starts to follow the log."""
    tails: list[LogTail] = []

    def make() -> LogTail:
        tails.append(LogTail(log))
        return tails[-1]

    yield make
    for tail in tails:
        tail.close()


def test_log_tail_returns_only_new_complete_lines(log: Path, follow: Callable[[], LogTail]) -> None:
    """Earlier lines are not repeated, and a line is returned when it is complete."""
    log.write_text("old\n")
    tail = follow()
    with log.open("a") as file:
        file.write("new\nha")
        file.flush()
        assert tail.new_lines() == ["new"]
        file.write("lf\n")
        file.flush()
        assert tail.new_lines() == ["half"]
    assert tail.new_lines() == []


def test_log_tail_continues_after_rotation(log: Path, follow: Callable[[], LogTail]) -> None:
    """The end of the rotated file comes first, then the new file from its beginning."""
    log.write_text("")
    tail = follow()
    log.write_text("last of the old\n")
    log.rename(log.with_name("log.1"))
    log.write_text("first of the new\n")
    assert [line for _ in range(3) for line in tail.new_lines()] == ["last of the old", "first of the new"]


def test_log_tail_reads_a_file_that_is_created_later(log: Path, follow: Callable[[], LogTail]) -> None:
    """From its first line."""
    tail = follow()
    assert tail.new_lines() == []
    log.write_text("hello\n")
    assert tail.new_lines() == ["hello"]


def test_json_log_line_is_formatted_as_text() -> None:
    """Time, level and event come first, then the other fields. The service is left out: it is the prefix."""
    line = json.dumps(
        {
            "timestamp": "2026-11-15T02:37:01.587588Z",
            "level": "warning",
            "service": "api",
            "event": "slow answer",
            "request_id": "r-1",
        }
    )
    assert format_log_line(line) == "02:37:01.587 WARNING slow answer request_id=r-1"


def test_traceback_of_a_log_line_is_printed_on_its_own_lines() -> None:
    line = json.dumps({"event": "failed", "level": "error", "exception": "Traceback:\n  here"})
    assert format_log_line(line).endswith("failed\nTraceback:\n  here")


@pytest.mark.parametrize("line", ["plain words", "{not json", "[1]", '{"no": "event"}', ""])
def test_lines_that_are_not_our_log_records_are_printed_unchanged(line: str) -> None:
    assert format_log_line(line) == line
