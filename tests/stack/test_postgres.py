"""The embedded PostgreSQL: states of its directory before a start."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from stack.engines import ChildProcess
from stack.errors import StackError
from stack.ports import find_free_ports
from stack.postgres import Postgres, find_postmaster
from stack.postgres_data import MAX_PATH_LENGTH
from stack.watchdog import Watchdog


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Postgres:
    """A prepared server in a directory of 300 and more characters."""
    directory = tmp_path_factory.mktemp("deep").joinpath(*["d" * 60] * 5) / "postgres"
    assert len(str(directory)) > 300
    made = Postgres(directory, find_free_ports(1)[0], durable=False)
    made.prepare()
    return made


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    made = Watchdog()
    yield made
    made.stop()


def start(server: Postgres, watchdog: Watchdog, log: Path) -> ChildProcess:
    process = ChildProcess(server.command(), log=log, watchdog=watchdog)
    process.start()
    server.wait_ready(log, process.running)
    return process


@pytest.mark.kills
def test_postgres_runs_in_a_deep_directory(server: Postgres, watchdog: Watchdog, tmp_path: Path) -> None:
    """A path too long for a unix socket works. A password is required, and its file is private."""
    process = start(server, watchdog, tmp_path / "log")
    try:
        with psycopg.connect(server.url) as connection:
            row = connection.execute("select current_database(), current_user").fetchone()
        assert row == ("mizan", "mizan")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(f"postgresql://mizan:wrong@127.0.0.1:{server.port}/mizan")
        assert (server.data.parent / "password").stat().st_mode & 0o777 == 0o600
    finally:
        process.kill()


@pytest.mark.kills
def test_stale_pid_file_is_removed_and_the_program_with_its_pid_left_alone(
    server: Postgres, watchdog: Watchdog, tmp_path: Path
) -> None:
    """After a crash, the pid in postmaster.pid may belong to another program."""
    owner = server.data.stat().st_uid if os.geteuid() == 0 else None
    with subprocess.Popen(["/bin/sleep", "60"], user=owner) as stranger:
        try:
            pid_file = server.data / "postmaster.pid"
            pid_file.write_text(f"{stranger.pid}\n{server.data}\n")
            assert any("postmaster.pid" in note for note in server.prepare())
            process = start(server, watchdog, tmp_path / "log")
            assert stranger.poll() is None
            process.kill()
        finally:
            stranger.kill()


@pytest.mark.kills
def test_second_server_on_the_same_data_is_refused(
    server: Postgres, watchdog: Watchdog, tmp_path: Path
) -> None:
    """The error names the pid of the running server, whose pid file stays."""
    process = start(server, watchdog, tmp_path / "log")
    try:
        found = find_postmaster(server.data)
        assert found is not None
        assert found.pid == process.pid
        with pytest.raises(StackError, match=f"already runs .*pid {process.pid}"):
            server.prepare()
        assert (server.data / "postmaster.pid").exists()
    finally:
        process.kill()


def test_data_of_another_version_is_refused(tmp_path: Path) -> None:
    """The error names both versions, and the data is not touched."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "PG_VERSION").write_text("16\n")
    with pytest.raises(StackError, match="version 16; this is version 18"):
        Postgres(tmp_path, 1).prepare()
    assert [path.name for path in data.iterdir()] == ["PG_VERSION"]


def test_incomplete_data_directory_is_created_again(tmp_path: Path) -> None:
    """What a killed first start has left is replaced."""
    (tmp_path / "data.new").mkdir()
    (tmp_path / "data.new" / "PG_VERSION").write_text("18\n")
    server = Postgres(tmp_path, 1)
    server.prepare()
    assert (server.data / "global").is_dir()
    assert not (tmp_path / "data.new").exists()


def test_too_deep_directory_is_refused(tmp_path: Path) -> None:
    """The error says so at once."""
    deep = tmp_path.joinpath(*["d" * 100] * (MAX_PATH_LENGTH // 100 + 1))
    with pytest.raises(StackError, match="too deep"):
        Postgres(deep, 1).prepare()


@pytest.mark.kills
def test_postgres_runs_below_a_private_directory(tmp_path: Path, watchdog: Watchdog) -> None:
    """Such as root's home, which no other account may enter. Its mode stays the same."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    server = Postgres(closed / "postgres", find_free_ports(1)[0], durable=False)
    server.prepare()
    start(server, watchdog, tmp_path / "log").kill()
    if sys.platform == "linux":
        assert closed.stat().st_mode & 0o777 == 0o700
