"""The API in processes, as in production, for tests to call and kill."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import requests

from shared.platform.settings import DatabaseSettings
from stack.ports import find_free_ports
from tests.database_roles import url_as
from tests.waiting import eventually


class RunningApi:
    """`python -m services.api` with its workers."""

    def __init__(self, database_url: str, directory: Path, **environment: str) -> None:
        self.port = int(environment.get("HTTP_PORT", 0)) or find_free_ports(1)[0]
        self.log = directory / "log"
        self._worker_count = int(environment.get("API_WORKERS", 2))
        given = {
            "DATABASE_URL": database_url,
            # Nothing listens there: the API never connects to Kafka.
            "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
            "HTTP_PORT": str(self.port),
            "PROMETHEUS_MULTIPROC_DIR": str(directory),
            "MIZAN_LOG_FORMAT": "json",
            **environment,
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "services.api"],
                env={**os.environ, **given},  # noqa: TID251 - the child gets ours, and what the test says
                stderr=log,
            )

    def wait_ready(self) -> None:
        """Wait until all workers have started and /readyz responds with 200."""
        eventually(
            lambda: (
                self.process.poll() is not None
                or self.log.read_text().count("Started worker-") == self._worker_count
            )
        )
        eventually(lambda: self.process.poll() is not None or self._says_ready())
        assert self.process.poll() is None, self.log.read_text()

    @property
    def workers(self) -> set[int]:
        """Return the pids of the workers."""
        return {child.pid for child in psutil.Process(self.process.pid).children()}

    def create(self, headers: Mapping[str, str], **fields: Any) -> requests.Response:
        body = {"merchant_reference": "order-1", "amount": 25_000, "currency": "LYD", **fields}
        return requests.post(self.url, json=body, headers=headers, timeout=30)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/v1"

    @property
    def url(self) -> str:
        return f"{self.base_url}/payment-intents"

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(40)

    def _says_ready(self) -> bool:
        try:
            return requests.get(f"http://127.0.0.1:{self.port}/readyz", timeout=5).ok
        except requests.ConnectionError:
            return False


@contextmanager
def running_api(database: DatabaseSettings, **environment: str) -> Iterator[RunningApi]:
    with TemporaryDirectory(prefix="mizan-api-") as directory:
        api = RunningApi(url_as("mizan_api", database.url), Path(directory), **environment)
        try:
            api.wait_ready()
            yield api
        finally:
            family = (
                psutil.Process(api.process.pid).children(recursive=True) if api.process.poll() is None else []
            )
            if api.process.poll() is None:
                api.stop()
            for left in family:
                if left.is_running():
                    left.kill()
