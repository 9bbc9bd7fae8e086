"""The first start's download is seen to go on, and a full disk is told as such."""

import errno
from pathlib import Path

import pytest

from stack.errors import StackError
from stack.jar_progress import LinesOfProgress
from stack.jars import ensure_jars
from stack.lock_file import LockedJar

JARS = [LockedJar(f"org.example:jar{number}:1.0", "0" * 64, 1_000_000) for number in range(40)]


def test_a_line_for_each_quarter_and_after_ten_silent_seconds() -> None:
    """Not one for each of the jars, and not none on a slow line."""
    now = [0.0]
    said: list[str] = []
    progress = LinesOfProgress(len(JARS), 40_000_000, clock=lambda: now[0], say=said.append)
    for number, jar in enumerate(JARS):
        now[0] += 11.0 if number == 2 else 0.1
        progress.arrived(jar)
    assert said == [
        "Fetching Kafka, 40 jars, 40 MB (once per user)",
        "  3 of 40 jars, 3 MB",
        "  13 of 40 jars, 13 MB",
        "  23 of 40 jars, 23 MB",
        "  33 of 40 jars, 33 MB",
        "  40 of 40 jars, 40 MB",
    ]


def test_a_full_disk_is_not_taken_for_a_broken_network(tmp_path: Path) -> None:
    def no_room(_coordinate: str, _directory: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StackError) as caught:
        ensure_jars(tmp_path, jars=JARS[:1], fetch=no_room)
    assert "No space left on device" in caught.value.problem
    assert "Make room" in caught.value.remedy
