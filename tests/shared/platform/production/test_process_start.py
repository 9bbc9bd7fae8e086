"""Processes in production start, or refuse to start and list all reasons."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import psycopg
import pytest
import requests
from click.testing import CliRunner

from mizan.__main__ import main as mizan
from shared.domain.accounts.operators import add_operator
from shared.platform.production.demo_data import OPERATOR
from shared.platform.settings import DatabaseSettings, KafkaSettings
from stack.errors import StackError
from stack.services import JOBS
from stack.startup_phases import started_job, wait_for_job
from tests.servers import ServiceProcess
from tests.shared.platform.production.conftest import GOOD
from tests.waiting import eventually

SERVICES = [
    "services.api.__main__",
    "services.checkout.__main__",
    "services.checkout.verification.__main__",
    "services.dashboard.__main__",
    "services.monitor.__main__",
    "services.sandbox.__main__",
    "services.scheduler.__main__",
    "services.webhooks.__main__",
]
BAD = {
    **GOOD,
    "API_PUBLIC_URL": "http://api.mizan.example",
    "MIZAN_WEBHOOK_SECRET_KEYS": "",
    "WEBHOOK_ALLOW_PRIVATE": "true",
    "SANDBOX_SECRET": "change-me-in-production-change-me-in-production",
    "HTTP_PORT": "many",
}
NAMED = (
    "API_PUBLIC_URL: ",
    "WEBHOOK_ALLOW_PRIVATE: ",
    "SANDBOX_SECRET: ",
    "HTTP_PORT: ",
)


def _make_demo(url: str) -> None:
    with psycopg.connect(url) as connection:
        add_operator(connection, OPERATOR, "a password for the test")


def _refusal(main: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 78
    return capsys.readouterr().err


def test_every_service_and_every_job_lists_all_reasons_not_to_start(
    good: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], strong_url: str, tmp_path: Path
) -> None:
    """Invalid settings, settings that production refuses, and demo data in the database."""
    _make_demo(strong_url)
    environment = {**BAD, "DATABASE_URL": strong_url, "STACK_DIR": str(tmp_path)}
    for name, value in environment.items():
        good.setenv(name, value)
    for service in SERVICES:
        told = _refusal(import_module(service).main, capsys)
        assert [name for name in (*NAMED, "demo data: ") if f"\n  {name}" not in told] == [], service
    for job in ("migrate", "topics"):
        refused = CliRunner().invoke(mizan, [job])
        assert refused.exit_code == 78
        assert [name for name in (*NAMED, "demo data: ") if f"\n  {name}" not in refused.stderr] == []


@pytest.mark.stack
def test_process_prints_the_reasons_and_exits(repository_root: Path) -> None:
    """Without a traceback or a secret; also while PostgreSQL is down."""
    environment = {**os.environ, **BAD}  # noqa: TID251  a process of its own needs PATH and the like
    command = [sys.executable, "-m", "services.scheduler"]
    ended = subprocess.run(
        command, env=environment, cwd=repository_root, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (78, "")
    assert "scheduler: the environment has wrong or missing settings:\n" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert BAD["SANDBOX_SECRET"] not in ended.stderr


@pytest.mark.stack
def test_stack_shows_the_reasons_of_its_first_job(tmp_path: Path) -> None:
    """It does not start services that would all exit at once."""
    environment = {**os.environ, **BAD, "STACK_DIR": str(tmp_path)}  # noqa: TID251  as above
    log = tmp_path / "log"
    with started_job(JOBS[0], environment, log) as process, pytest.raises(StackError) as refused:
        wait_for_job(JOBS[0].name, process, log)
    assert [name for name in NAMED if f"\n  {name}" not in refused.value.problem] == []
    assert "Correct them" in refused.value.remedy


@pytest.mark.stack
def test_service_starts_without_the_database_and_checks_it_for_demo_data_later(
    database_settings: DatabaseSettings, kafka_settings: KafkaSettings, strong_url: str, repository_root: Path
) -> None:
    """While PostgreSQL is down it starts and waits. Demo data found later keeps it from becoming ready."""
    server_url, _, name = strong_url.rpartition("/")
    later = f"{name}_later"
    url = f"{server_url}/{later}"
    environment = {
        name: value
        for name, value in GOOD.items()
        if name == "MIZAN_ENV" or name.endswith(("_PUBLIC_URL", "_RATE_LIMIT"))
    }
    settings = replace(database_settings, url=url)
    service = ServiceProcess(
        "services.api", repository_root, settings, kafka_settings, API_WORKERS="1", **environment
    )

    def checks() -> dict[str, str]:
        answer = requests.get(f"http://127.0.0.1:{service.port}/readyz", timeout=10)
        found: dict[str, str] = answer.json()["checks"]
        return found

    _make_demo(strong_url)
    with psycopg.connect(f"{server_url}/postgres", autocommit=True) as server:
        with service.running() as process:
            eventually(lambda: service.status("healthz") == 200)
            assert service.status() == 503
            server.execute(f'alter database "{name}" rename to "{later}"'.encode())
            eventually(lambda: "mizan remove-demo" in checks()["demo data"])
            assert checks()["database"] == "ok"
            assert service.status() == 503
            with psycopg.connect(url) as connection:
                connection.execute("update operators set removed_at = now()")
            eventually(lambda: service.status() == 200)
            assert checks() == {"database": "ok", "schema": "ok", "demo data": "ok"}
            assert process.poll() is None
        server.execute(f'drop database "{later}" with (force)'.encode())
