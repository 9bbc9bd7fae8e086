"""What the front notices while the stack is up, told by supervisord's words about it."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from stack.console import Console
from stack.programs import Program
from stack.supervision import ProcessState, Supervision
from stack.watch import Watch

PROGRAM = Program("api", "api", ("api",))


class Told:
    """Stands in for supervisord."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def states(self) -> dict[str, ProcessState]:
        return state(self._pid)


def state(pid: int, *, given_up: bool = False) -> dict[str, ProcessState]:
    return {"api": ProcessState("api", pid, given_up)}


@pytest.fixture
def written() -> list[int]:
    """The pids that went to stack.json, one after the other."""
    return []


@pytest.fixture
def watch(tmp_path: Path, written: list[int]) -> Watch:
    def write(states: Mapping[str, ProcessState]) -> None:
        written.append(states["api"].pid)

    supervision = cast("Supervision", Told(100))
    return Watch(supervision, [PROGRAM], tmp_path, Console(colour=False), write)


def test_nothing_new_is_not_told(
    watch: Watch, written: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    """A process that just goes on is no news."""
    watch.compare(state(100))
    assert capsys.readouterr().out == ""
    assert written == [100]


def test_restart_is_told_with_both_pids(
    watch: Watch, written: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    """The end and the new start are told, also when a look falls between them, and stack.json follows."""
    watch.compare(state(0))
    watch.compare(state(200))
    out = capsys.readouterr().out
    assert "api (pid 100) has ended" in out
    assert "api was restarted (pid 100 → 200)" in out
    assert written == [100, 0, 200]


def test_given_up_is_told_once_with_the_log(
    watch: Watch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process that cannot be restarted is told loudly, with the end of its log, and the rest goes on."""
    (tmp_path / "api.log").write_text("cannot read the key file\n")
    watch.compare(state(0, given_up=True))
    watch.compare(state(0, given_up=True))
    out = capsys.readouterr().out
    assert out.count("not restarted any more") == 1
    assert "cannot read the key file" in out
    assert "Everything else runs on" in out


def test_log_lines_carry_the_name(watch: Watch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each new line of a log is printed under its process's name."""
    (tmp_path / "api.log").write_text("hello\n")
    watch.print_new_lines()
    watch.close()
    assert capsys.readouterr().out == "api | hello\n"
