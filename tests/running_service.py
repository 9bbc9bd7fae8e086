"""A service as the process it is, for tests to start, to ask and to kill."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import requests

from shared.platform.settings import DatabaseSettings, KafkaSettings
from stack.free_ports import find_free_ports


class Service:
    def __init__(
        self, module: str, root: Path, database: DatabaseSettings, kafka: KafkaSettings, **environment: str
    ) -> None:
        self._module = module
        self.port = find_free_ports(1)[0]
        self._root = root
        self._environment = {
            **os.environ,  # noqa: TID251  a process of its own needs PATH and the like
            "DATABASE_URL": database.url,
            "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
            "KAFKA_TOPIC_PREFIX": kafka.topic_prefix,
            "HTTP_PORT": str(self.port),
            **environment,
        }

    @contextmanager
    def running(self, *arguments: str, log: IO[bytes] | None = None) -> Iterator["subprocess.Popen[bytes]"]:
        """What it says goes to `log`, where there is one."""
        process = subprocess.Popen(
            [sys.executable, "-m", self._module, *arguments],
            cwd=self._root,
            env=self._environment,
            stdout=log,
            stderr=log,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)

    def status(self, page: str = "readyz") -> int:
        try:
            return requests.get(f"http://127.0.0.1:{self.port}/{page}", timeout=10).status_code
        except requests.ConnectionError:
            return 0

    def page(self, name: str) -> str:
        return requests.get(f"http://127.0.0.1:{self.port}/{name}", timeout=10).text
