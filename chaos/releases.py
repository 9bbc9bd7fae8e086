"""Two releases side by side on one database and one Kafka: which one's files each process runs from.

Migrations and topics are those of this release, before any process starts, as in every upgrade.
"""

import subprocess
from enum import StrEnum
from pathlib import Path
from tempfile import mkdtemp

from stack.errors import StackError
from stack.programs import PROJECT


class Release(StrEnum):
    PREVIOUS = "previous"
    CURRENT = "current"

    @property
    def other(self) -> "Release":
        return Release.CURRENT if self is Release.PREVIOUS else Release.PREVIOUS


class Releases:
    """The files of both releases. A process that is changed over runs from the others at its next start."""

    def __init__(self, directory: Path, previous: str, first: Release) -> None:
        """`previous` is the commit of the previous release; all processes start with `first`. Raises StackError."""
        self.first = first
        self._directory = Path(mkdtemp(prefix="releases-", dir=directory))
        self._projects = {Release.PREVIOUS: self._directory / "previous", Release.CURRENT: PROJECT}
        _extract(previous, self._projects[Release.PREVIOUS])

    def project(self, release: Release) -> Path:
        return self._projects[release].resolve()

    def command(self, name: str, command: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command of the process `name`, in the directory of its release."""
        self._set(name, self.first)
        return ("/usr/bin/env", f"--chdir={self._link(name)}", *command)

    def change_over(self, name: str) -> None:
        self._set(name, self.first.other)

    def _set(self, name: str, release: Release) -> None:
        link = self._link(name)
        link.unlink(missing_ok=True)
        link.symlink_to(self.project(release), target_is_directory=True)

    def _link(self, name: str) -> Path:
        return self._directory / f"{name}.release"


def _extract(commit: str, directory: Path) -> None:
    directory.mkdir()
    archive = directory.with_suffix(".tar")
    commands = (
        ("git", "archive", f"--output={archive}", commit),
        ("tar", "--extract", f"--file={archive}", f"--directory={directory}"),
    )
    for command in commands:
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise StackError(
                f"There are no files of the release {commit}: {done.stderr.strip()}",
                "Give a commit that this clone has.",
            )
