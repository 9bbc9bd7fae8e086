"""The whole stack as `make run` starts it, with stand-in services: start, failures, recovery, stop."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from stack.kafka import count_brokers
from stack.ports import is_free
from stack.processes import is_running
from tests.engines import TestEngines
from tests.stack.running_stack import PROJECT, RunningStack, free_port_base
from tests.waiting import eventually

pytestmark = pytest.mark.stack

Start = Callable[..., RunningStack]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start stacks that are stopped when the test ends."""
    started: list[RunningStack] = []

    def make(*arguments: str, directory: Path = tmp_path / "stack", **environment: Any) -> RunningStack:
        started.append(RunningStack(directory, *arguments, **environment))
        return started[-1]

    yield make
    for stack in started:
        stack.end()


@pytest.fixture
def given(engines: TestEngines) -> dict[str, str]:
    """The settings of external engines, so that the stack embeds none."""
    return {
        "DATABASE_URL": engines.database_url,
        "KAFKA_BOOTSTRAP_SERVERS": engines.kafka_bootstrap_servers,
        "KAFKA_PASSWORDS_DIR": str(engines.kafka_logins.directory) if engines.kafka_logins else "",
    }


def get(port: int, path: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def _files_with(directory: Path, secret: str, mode: int) -> set[str]:
    """Return the names of the files that hold the secret. Fails if others could read one."""
    found = set()
    for path in directory.rglob("*"):
        if path.is_file() and not path.is_symlink() and secret.encode() in path.read_bytes():
            assert path.stat().st_mode & 0o777 == mode, path
            found.add(path.name)
    return found


def role_at(url: str) -> Any:
    """Log in. Return the name of the role, and whether it is a superuser."""
    with psycopg.connect(url) as connection:
        return connection.execute(
            "select rolname, rolsuper from pg_roles where rolname = current_user"
        ).fetchone()


def all_gone(pids: dict[str, int]) -> bool:
    return not any(psutil.pid_exists(pid) and is_running(psutil.Process(pid)) for pid in pids.values())


def has_new_pid(stack: RunningStack, before: dict[str, Any], name: str) -> bool:
    now = stack.read()["pids"].get(name)
    return now is not None and now != before["pids"][name]


@pytest.mark.kills
def test_stack_starts_restarts_a_killed_service_and_stops(start: Start) -> None:
    """The ready stack is usable, the restart is reported, and SIGTERM stops everything with exit status 0."""
    stack = start()
    ready = stack.wait_ready()
    assert ready["first_url"] == f"http://127.0.0.1:{stack.port_base + 1}"
    assert ready["second_url"] == f"http://127.0.0.1:{stack.port_base + 6}/v1"
    assert ready["demo"] == {}
    assert set(ready["pids"]) == {"postgres", "kafka", "first", "second", "supervisor", "stack"}
    assert ready["pids"]["stack"] == stack.pid
    assert stack.file.stat().st_mode & 0o777 == 0o600
    assert role_at(ready["database_url"]) == ("mizan_owner", False)
    assert role_at(ready["cli_database_url"]) == ("mizan_cli", False)
    assert count_brokers(ready["kafka_bootstrap_servers"], ready["kafka_client"]) == 1
    own = stack.directory / "database_urls" / "mizan_api"
    assert role_at(own.read_text().strip()) == ("mizan_api", False)
    for secret in (own, stack.directory / "role_passwords"):
        assert secret.stat().st_mode & 0o077 == 0
    passwords = json.loads((stack.directory / "role_passwords").read_text())
    assert not any(
        password in (stack.directory / "supervisord.conf").read_text() for password in passwords.values()
    )
    assert get(stack.port_base + 6, "/given") == {
        "DATABASE_URL": None,
        "DATABASE_URL_FILE": str(own),
        "KAFKA_BOOTSTRAP_SERVERS": ready["kafka_bootstrap_servers"],
        "KAFKA_CLIENT_SASL_USERNAME": "mizan-webhooks",
        "KAFKA_REPLICATION_FACTOR": "1",
        "MIZAN_ENV": "development",
        "MIZAN_STACK_DIR": str(stack.directory),
    }
    without_principal = get(stack.port_base + 1, "/given")
    assert {name for name, value in without_principal.items() if value is None} == {
        "DATABASE_URL",  # its address, with the password, is in a file
        "KAFKA_BOOTSTRAP_SERVERS",
        "KAFKA_CLIENT_SASL_USERNAME",
        "KAFKA_REPLICATION_FACTOR",
    }
    assert ready["kafka_client"]["sasl.username"] == "mizan-admin"
    assert _files_with(stack.directory, ready["kafka_client"]["sasl.password"], mode=0o600) == {
        "stack.json",
        "kafka_admin",
    }

    os.kill(ready["pids"]["second"], signal.SIGKILL)
    eventually(lambda: has_new_pid(stack, ready, "second"))
    eventually(lambda: not is_free(stack.port_base + 6))
    eventually(lambda: "second was restarted" in stack.output)
    after = stack.read()
    assert {**after["pids"], "second": 0} == {**ready["pids"], "second": 0}
    eventually(lambda: f"second listens on {stack.port_base + 6}" in stack.output)

    assert stack.stop() == 0, stack.output
    assert not stack.file.exists()
    assert all_gone(ready["pids"] | after["pids"])
    assert stack.orphans() == []
    order = [stack.output.index(f"Stopping {name}") for name in ("second", "first", "kafka", "postgres")]
    assert order == sorted(order)


def test_sigint_to_make_alone_stops_the_stack(tmp_path: Path, given: dict[str, str]) -> None:
    """Some terminals, editors and scripts send it so, and make does not pass it on."""
    makefile = tmp_path / "Makefile"
    makefile.write_text(f"run:\n\t@exec {sys.executable} -m tests.stack.stand_in_stack\n")
    settings = {"STACK_DIR": str(tmp_path / "stack"), "PORT_BASE": str(free_port_base()), **given}
    environment = {**os.environ, **settings}  # noqa: TID251 - the child gets ours, and what the test says
    # A process that a shell started in the background ignores SIGINT, and so would its children.
    command = ["env", "--default-signal=INT", "make", "-f", str(makefile), "run"]
    make = subprocess.Popen(command, cwd=PROJECT, env=environment)
    file = tmp_path / "stack" / "stack.json"
    eventually(file.exists, within=60)
    pids = json.loads(file.read_text())["pids"]
    make.send_signal(signal.SIGINT)
    make.wait(60)
    assert all_gone(pids)


@pytest.mark.kills
def test_next_run_stops_orphans_after_kill_9_and_keeps_the_data(start: Start) -> None:
    """After SIGKILL of the launcher, and then of the launcher and supervisord."""
    first = start()
    ready = first.wait_ready()
    sockets = [(first.directory / "rpc").readlink()]
    with psycopg.connect(ready["database_url"]) as connection:
        connection.execute("create table kept (id int)")
    first.send(signal.SIGKILL)
    first.wait_exit()

    second = start(port_base=first.port_base)
    eventually(lambda: "not supervised any more" in second.output)
    again = second.wait_ready()
    sockets.append((second.directory / "rpc").readlink())
    assert all_gone(ready["pids"])
    second.send(signal.SIGKILL)
    os.kill(again["pids"]["supervisor"], signal.SIGKILL)
    second.wait_exit()

    third = start(port_base=first.port_base)
    eventually(lambda: "not supervised any more" in third.output)
    final = third.wait_ready()
    assert all_gone(again["pids"])
    with psycopg.connect(final["database_url"]) as connection:
        assert connection.execute("select count(*) from kept").fetchone() == (0,)
    assert third.stop() == 0
    assert third.orphans() == []
    assert [socket for socket in sockets if socket.exists()] == []


@pytest.mark.kills
def test_death_of_supervisord_ends_the_stack(start: Start) -> None:
    """Nothing would restart the processes, so the launcher stops them and says why."""
    stack = start()
    ready = stack.wait_ready()
    os.kill(ready["pids"]["supervisor"], signal.SIGKILL)
    assert stack.wait_exit() == 1
    assert "supervisord, which supervises the processes, has died" in stack.output
    assert "Traceback" not in stack.output
    assert all_gone(ready["pids"])
    assert not stack.file.exists()


def test_one_stack_runs_per_directory_and_two_in_different_directories(
    start: Start, given: dict[str, str], tmp_path: Path
) -> None:
    """The error of a second start in the same directory names the pid of the first."""
    first = start(**given)
    first.wait_ready()
    refused = start(**given)
    assert refused.wait_exit() == 1
    assert f"already runs in {first.directory} (pid {first.pid})" in refused.output
    beside = start(directory=tmp_path / "beside")
    assert beside.wait_ready()["pids"]["stack"] == beside.pid
    assert beside.stop() == 0
    assert get(first.port_base + 1, "/given")["MIZAN_STACK_DIR"] == str(first.directory)
    assert first.stop() == 0


def test_external_engines_are_not_embedded(start: Start, given: dict[str, str]) -> None:
    """With DATABASE_URL and KAFKA_BOOTSTRAP_SERVERS set, the stack neither starts nor stops an engine."""
    stack = start(**given)
    ready = stack.wait_ready()
    assert set(ready["pids"]) == {"first", "second", "supervisor", "stack"}
    addresses = stack.directory / "database_urls"
    assert (addresses / "mizan_api").read_text().strip() == given["DATABASE_URL"]
    assert get(stack.port_base + 6, "/given") == {
        "DATABASE_URL": None,
        "DATABASE_URL_FILE": str(addresses / "mizan_api"),
        "KAFKA_BOOTSTRAP_SERVERS": given["KAFKA_BOOTSTRAP_SERVERS"],
        "KAFKA_CLIENT_SASL_USERNAME": "mizan-webhooks",
        "KAFKA_REPLICATION_FACTOR": None,
        "MIZAN_ENV": "development",
        "MIZAN_STACK_DIR": str(stack.directory),
    }
    assert stack.stop() == 0
    psycopg.connect(given["DATABASE_URL"]).close()
    assert count_brokers(given["KAFKA_BOOTSTRAP_SERVERS"], ready["kafka_client"]) == 1


@contextmanager
def default_hangup_handling() -> Iterator[None]:
    """Restore the default action of SIGHUP: tests started with nohup ignore it, and so would their children."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_signals_during_start_and_stop_stop_the_stack_cleanly(start: Start, number: signal.Signals) -> None:
    with default_hangup_handling():
        stack = start()
    eventually(lambda: "PostgreSQL ready" in stack.output, within=80)
    stack.send(number)
    eventually(lambda: "Stopping" in stack.output)
    stack.send(number)
    assert stack.wait_exit() == 0, stack.output
    assert stack.orphans() == []


def test_service_that_cannot_start_stops_the_stack_with_exit_status_1(
    start: Start, given: dict[str, str]
) -> None:
    """The end of its log is shown."""
    stack = start("broken-service", **given)
    assert stack.wait_exit() == 1
    assert "broken exited while it was starting" in stack.output
    assert "no such setting" in stack.output
    assert "Traceback" not in stack.output
    assert stack.orphans() == []


def test_job_that_fails_stops_the_stack_with_exit_status_1(start: Start, given: dict[str, str]) -> None:
    """Its output is shown, the other jobs are killed, and no service is started."""
    stack = start("broken-job", **given)
    assert stack.wait_exit() == 1
    assert "the schema is from the future" in stack.output
    assert "Services" not in stack.output
    assert stack.orphans() == []


def test_error_of_an_unusable_stack_directory_names_the_remedy(start: Start, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    stack = start(STACK_DIR=str(tmp_path / "file" / "below"))
    assert stack.wait_exit() == 1
    assert "cannot be used" in stack.output
    assert "Traceback" not in stack.output
    assert "STACK_DIR=" in stack.output


@pytest.mark.cluster
@pytest.mark.kills
def test_stack_with_three_brokers_restarts_a_killed_broker(start: Start) -> None:
    """The directory stores their number, so a later start with one broker is refused."""
    stack = start(BROKERS="3")
    ready = stack.wait_ready()
    assert count_brokers(ready["kafka_bootstrap_servers"], ready["kafka_client"]) == 3
    assert get(stack.port_base + 6, "/given")["KAFKA_REPLICATION_FACTOR"] == "3"
    os.kill(ready["pids"]["kafka-2"], signal.SIGKILL)
    eventually(lambda: has_new_pid(stack, ready, "kafka-2"))
    assert stack.stop() == 0
    assert stack.orphans() == []
    one = start()
    assert one.wait_exit() == 1
    assert "was created with BROKERS=3, not 1" in one.output
