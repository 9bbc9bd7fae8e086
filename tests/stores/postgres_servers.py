"""PostgreSQL servers that a test replicates, backs up, restores, freezes and kills."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from shared.platform.database.roles import ROLE_NAMES
from stack.database_roles import prepare_embedded_roles
from stack.engines import ChildProcess
from stack.postgres import Postgres, bin_directory
from stack.watchdog import Watchdog
from tests.database_roles import password_of
from tests.engines import engine_directory
from tests.logs import attach_log
from tests.waiting import eventually

STANDBY = "standby"
# Relative to the data directory, where the server runs: its account may not be able to use the whole path.
_ARCHIVE = "../archive"
ARCHIVING = {
    "archive_mode": "on",
    # In two steps: a file of the archive is complete.
    "archive_command": f"cp %p {_ARCHIVE}/.%f && mv {_ARCHIVE}/.%f {_ARCHIVE}/%f",
}


class PostgresServer(ChildProcess):
    """A server with its data below `home`. `settings` are PostgreSQL's own, by name."""

    def __init__(self, home: Path, port: int, watchdog: Watchdog, **settings: str) -> None:
        self.home = home
        self.port = port
        self._server = Postgres(home, port, durable=False)
        self._server.prepare()
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        super().__init__(
            [*self._server.command(), *options],
            log=home.with_name(f"{home.name}.log"),
            watchdog=watchdog,
            stop_signal=signal.SIGINT,
        )
        _give_to_server(home, self._server.data, "archive")

    @property
    def url(self) -> str:
        """The superuser's."""
        return self._server.url

    def start(self) -> None:
        super().start()
        attach_log(self.log)
        self._server.wait_ready(self.log, self.running)

    def execute(self, statement: str) -> Any:
        """Run one statement as the superuser. Return the first value of its first row, if it has one."""
        with psycopg.connect(self.url, autocommit=True, connect_timeout=5) as connection:
            cursor = connection.execute(statement.encode())
            row = cursor.fetchone() if cursor.description else None
            return row and row[0]

    def prepare_roles(self) -> None:
        """Create Mizan's roles with the passwords of tests, and give the database to its owner."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            # Passwords are hashed once instead of 4096 times at each login.
            connection.execute("alter system set scram_iterations = 1")
            connection.execute("select pg_reload_conf()")
        prepare_embedded_roles(self.url, {name: password_of(name) for name in ROLE_NAMES})

    def back_up(self, home: Path, *options: str) -> None:
        """Copy the data of the running server with pg_basebackup, for a server with its data below `home`."""
        home.mkdir(parents=True)
        copy = home / "data"
        login = f"{self.url}?application_name={home.name}"
        subprocess.run(
            [
                bin_directory() / "pg_basebackup",
                *("--pgdata", copy, "--dbname", login),
                *("--checkpoint=fast", "--no-sync", *options),
            ],
            check=True,
            capture_output=True,
            timeout=60,
        )
        (home / "password").write_text(f"{conninfo_to_dict(self.url)['password']}\n")
        _give_to_server(home, self._server.data, "data")

    def wait_for_standby(self, *, synchronous: bool) -> None:
        """Wait until the standby follows; if it is to be synchronous, commits wait for it from now on."""
        if synchronous:
            self.execute(f"alter system set synchronous_standby_names = '{STANDBY}'")
            self.execute("select pg_reload_conf()")
        state = "sync" if synchronous else "async"
        eventually(
            lambda: self.execute(
                f"select count(*) from pg_stat_replication where state = 'streaming' and sync_state = '{state}'"
            )
        )

    def promote(self) -> None:
        assert self.execute("select pg_promote(wait => true, wait_seconds => 60)")

    def archive_everything(self) -> None:
        """Wait until all that is committed by now is in the archive."""
        last = self.execute("select pg_walfile_name(pg_switch_wal())")
        eventually((self.home / "archive" / str(last)).exists)

    def is_writable(self) -> bool:
        return not self.execute("select pg_is_in_recovery()")


def restore(backup: Path, archive: Path, home: Path, until: float) -> None:
    """Make a data directory below `home` that is recovered, at its first start, to the time `until`."""
    shutil.copytree(backup, home, symlinks=True)
    shutil.copytree(archive, home / "archive")
    moment = datetime.fromtimestamp(until, UTC).isoformat()
    with (home / "data" / "postgresql.auto.conf").open("a") as settings:
        settings.write(
            f"restore_command = 'cp {_ARCHIVE}/%f %p'\nrecovery_target_time = '{moment}'\n"
            "recovery_target_action = 'promote'\n"
        )
    (home / "data" / "recovery.signal").touch()
    for name in ("data", "archive"):
        _give_to_server(home, backup / "data", name)


def _give_to_server(home: Path, like: Path, name: str) -> None:
    """Give a directory below `home` to the account that owns `like`. It is created if it is missing."""
    owner = like.stat()
    (home / name).mkdir(mode=0o700, exist_ok=True)
    for path in ((home / name), *(home / name).rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def both_hosts(first: PostgresServer, second: PostgresServer) -> str:
    """Return the address of whichever of the two is the primary. Its login is the superuser's of the first."""
    login = first.url.partition("@")[0]
    hosts = f"127.0.0.1:{first.port},127.0.0.1:{second.port}"
    return f"{login}@{hosts}/{conninfo_to_dict(first.url)['dbname']}?target_session_attrs=read-write"


@contextmanager
def server_directory() -> Iterator[tuple[Path, Watchdog]]:
    """Yield a directory for servers, in memory if there is space, and what kills them all at the end."""
    watchdog = Watchdog()
    with engine_directory() as directory:
        directory.chmod(0o755)
        try:
            yield directory, watchdog
        finally:
            watchdog.stop()


@contextmanager
def primary_and_standby(*ports: int, synchronous: bool) -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """Start a primary and a standby that follows it, with Mizan's roles. Kill both at the end."""
    with server_directory() as (directory, watchdog):
        primary = PostgresServer(directory / "primary", ports[0], watchdog)
        servers = [primary]
        try:
            primary.start()
            primary.prepare_roles()
            primary.back_up(directory / STANDBY, "--write-recovery-conf")
            standby = PostgresServer(directory / STANDBY, ports[1], watchdog)
            servers.append(standby)
            standby.start()
            primary.wait_for_standby(synchronous=synchronous)
            yield primary, standby
        finally:
            for server in servers:
                server.kill()
