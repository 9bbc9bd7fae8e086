"""Following a log file."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stack.log_tail import LogTail


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def follow(log: Path) -> Iterator[Callable[[], LogTail]]:
    """Starts to follow the log."""
    tails: list[LogTail] = []

    def make() -> LogTail:
        tails.append(LogTail(log))
        return tails[-1]

    yield make
    for tail in tails:
        tail.close()


def test_only_new_whole_lines(log: Path, follow: Callable[[], LogTail]) -> None:
    """What was there before is not repeated, and a line is told once it is whole."""
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


def test_goes_on_after_rotation(log: Path, follow: Callable[[], LogTail]) -> None:
    """The end of the rotated file comes first, then the new file from its beginning."""
    log.write_text("")
    tail = follow()
    log.write_text("last of the old\n")
    log.rename(log.with_name("log.1"))
    log.write_text("first of the new\n")
    assert [line for _ in range(3) for line in tail.new_lines()] == ["last of the old", "first of the new"]


def test_file_that_comes_later(log: Path, follow: Callable[[], LogTail]) -> None:
    """A log that does not exist yet is read from its first line once it does."""
    tail = follow()
    assert tail.new_lines() == []
    log.write_text("hello\n")
    assert tail.new_lines() == ["hello"]
