"""Who holds a PostgreSQL data directory: its postmaster.pid, checked against what really runs."""

from pathlib import Path

import psutil


def postmaster_of(data: Path) -> psutil.Process | None:
    """The running server of this data directory, if there is one."""
    try:
        process = psutil.Process(int(_pid_file(data).read_text().split("\n", 1)[0]))
        # A reused pid belongs to some other program, or to a server of another directory.
        is_ours = process.name() == "postgres" and Path(process.cwd()) == data.resolve()
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess, psutil.AccessDenied):
        return None
    return process if is_ours else None


def remove_stale_pid_file(data: Path) -> bool:
    """Remove a postmaster.pid nobody stands behind: PostgreSQL would not start if its pid was given away."""
    if not _pid_file(data).exists() or postmaster_of(data) is not None:
        return False
    _pid_file(data).unlink()
    return True


def _pid_file(data: Path) -> Path:
    return data / "postmaster.pid"
