"""Servers for tests: a service in a process of its own, or an application in the process of the test."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO

import requests
from flask import Flask
from werkzeug.serving import make_server

from shared.domain.kafka_principals import ALL_PRINCIPALS
from shared.platform.settings import DatabaseSettings, KafkaSettings
from stack.ports import find_free_ports
from stack.programs import DEVELOPMENT_LIMITS
from stack.services import SERVICES
from tests.database_roles import MODULE_ROLES, url_as
from tests.topics import as_principal, kafka_variables

_PRINCIPALS = {
    service.command[2]: principal
    for service in SERVICES
    for principal in ALL_PRINCIPALS
    if principal.name == service.kafka_principal
}


class ServiceProcess:
    """Starts a service as a process that a test can query and kill. It logs in to Kafka as its own principal."""

    def __init__(
        self, module: str, root: Path, database: DatabaseSettings, kafka: KafkaSettings, **environment: str
    ) -> None:
        self._module = module
        self.port = find_free_ports(1)[0]
        self._root = root
        self._environment = {
            **os.environ,  # noqa: TID251  the process needs PATH and the like
            **DEVELOPMENT_LIMITS,
            "DATABASE_URL": url_as(MODULE_ROLES[module], database.url),
            **kafka_variables(as_principal(kafka, _PRINCIPALS[module]) if module in _PRINCIPALS else kafka),
            "HTTP_PORT": str(self.port),
            **environment,
        }

    @contextmanager
    def running(self, *arguments: str, log: IO[bytes] | None = None) -> Iterator["subprocess.Popen[bytes]"]:
        """Run the service until the block ends. Its output goes to `log`, if given."""
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


@contextmanager
def serve(app: Flask, port: int) -> Iterator[None]:
    server = make_server("127.0.0.1", port, app, threaded=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
