"""The environment of benchmarks: migrated databases, topics and services on the engines of this run."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe
from tempfile import TemporaryDirectory
from types import MappingProxyType
from uuid import uuid4

import psycopg
import requests
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from shared.domain.kafka_principals import ADMIN, ALL_PRINCIPALS
from shared.domain.topics import ALL_TOPICS
from shared.platform.database.roles import OWNER, ROLE_NAMES
from shared.platform.kafka.access_setup import AccessAdmin
from shared.platform.kafka.topic_setup import ensure_topics
from shared.platform.migrations.runner import migrate
from shared.platform.settings import DatabaseSettings, KafkaSettings
from stack.database_roles import prepare_embedded_roles, urls_with_passwords
from stack.engines import Engines
from stack.options import read_options
from stack.ports import find_free_ports
from stack.programs import DEVELOPMENT_LIMITS
from stack.services import SERVICES

_PRINCIPALS = {service.command[2]: service.kafka_principal for service in SERVICES if service.kafka_principal}
_WITH_WORKERS = {" ".join(service.command[2:]) for service in SERVICES if service.has_workers}
_ROLES = {service.command[2]: service.database_role or OWNER for service in SERVICES}
_LOG_SHOWN = 4000
_READY_TIMEOUT_S = 120.0
_STOP_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class RunningService:
    pid: int
    port: int


class World:
    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._passwords = {name: token_urlsafe() for name in ROLE_NAMES}
        prepare_embedded_roles(engines.database_url, self._passwords)
        with psycopg.connect(engines.database_url) as connection:
            # So that what is filled in is on disk before it is measured.
            connection.execute(f"grant pg_checkpoint to {OWNER}".encode())

    def empty_database(self) -> DatabaseSettings:
        """Create a migrated database without rows and statistics. The settings are those of its owner."""
        name = f"bench_{uuid4().hex[:8]}"
        with psycopg.connect(self._engines.database_url, autocommit=True) as connection:
            connection.execute(f'create database "{name}" owner {OWNER}'.encode())
        url = self._url_as(OWNER, f"{self._engines.database_url.rsplit('/', 1)[0]}/{name}")
        migrate(url)
        return DatabaseSettings(
            url, pool_size=8, connect_timeout_s=3, pool_timeout_s=2.0, statement_timeout_s=60
        )

    def _url_as(self, role: str, url: str) -> str:
        return urls_with_passwords(url, self._passwords)[role]

    def empty_topics(self) -> KafkaSettings:
        """Create all topics, with the ACLs of each principal. The settings are those of the admin."""
        settings = KafkaSettings(
            self._engines.kafka_bootstrap_servers,
            f"{uuid4().hex[:8]}.",
            1,
            MappingProxyType(self._engines.kafka_logins.client(ADMIN.name)),
        )
        ensure_topics(settings, ALL_TOPICS)
        AccessAdmin(settings).apply(ALL_PRINCIPALS)
        return settings

    def engine_pids(self) -> dict[str, int]:
        return {"postgres": self._engines.postgres.pid, "kafka": self._engines.kafka.broker(1).pid}

    @contextmanager
    def service(
        self,
        module: str,
        database: DatabaseSettings,
        kafka: KafkaSettings | None = None,
        *,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Iterator[RunningService]:
        """Run one of our services as a process with its default settings. Yields when it is ready."""
        port = find_free_ports(1)[0]
        with TemporaryDirectory(prefix="mizan-bench-") as directory:
            settings = {
                **DEVELOPMENT_LIMITS,
                **read_options().inherited,
                "DATABASE_URL": self._url_as(_ROLES[module], database.url),
                **(self._kafka_environment(_PRINCIPALS[module], kafka) if kafka else {}),
                "HTTP_PORT": str(port),
                **({"PROMETHEUS_MULTIPROC_DIR": directory} if module in _WITH_WORKERS else {}),
                **environment,
            }
            log = Path(directory) / "log"
            with log.open("wb") as output:
                process = subprocess.Popen(
                    [sys.executable, "-m", module, *arguments], env=settings, stderr=output
                )
            try:
                _wait_until_ready(port)
                yield RunningService(process.pid, port)
            except BaseException:
                sys.stderr.write(log.read_text()[-_LOG_SHOWN:])
                raise
            finally:
                _stop(process)

    def _kafka_environment(self, principal: str, kafka: KafkaSettings) -> dict[str, str]:
        return {
            "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
            "KAFKA_TOPIC_PREFIX": kafka.topic_prefix,
            **self._engines.kafka_logins.environment(principal),
        }


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop it gracefully. One that takes too long is killed: what was measured counts all the same."""
    process.terminate()
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_until_ready(port: int) -> None:
    for attempt in Retrying(
        wait=wait_fixed(0.1),
        stop=stop_after_delay(_READY_TIMEOUT_S),
        retry=retry_if_exception_type(requests.RequestException),
    ):
        with attempt:
            requests.get(f"http://127.0.0.1:{port}/readyz", timeout=5).raise_for_status()
