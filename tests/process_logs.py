"""The logs of processes that tests use. What they have written during a test is shown if it fails."""

from pathlib import Path

_LINES = 40

_shown: list[Path] = []
_lengths: dict[Path, int] = {}
"""How long each log was when the test began."""


def show_log(path: Path) -> None:
    """Show what is written to this log, or to the logs in this directory, from now on, by each test that fails."""
    _shown.append(path)
    _lengths.update({file: file.stat().st_size for file in _files(path)})


def remember_lengths() -> None:
    """A test begins."""
    _shown[:] = [path for path in _shown if path.exists()]
    _lengths.clear()
    _lengths.update({file: file.stat().st_size for path in _shown for file in _files(path)})


def written_since() -> list[tuple[str, str]]:
    """Return the name of each log that the test has made longer, and the end of what was added."""
    found = []
    for file in sorted({file for path in _shown for file in _files(path)}):
        with file.open("rb") as log:
            log.seek(_lengths.get(file, 0))
            # Kafka tells of each partition that is made or removed.
            lines = [
                line for line in log.read().decode(errors="replace").splitlines() if " INFO " not in line
            ]
        if lines:
            found.append((file.name, "\n".join(lines[-_LINES:])))
    return found


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return list(path.glob("*.log"))
    return [path] if path.exists() else []
