"""Where measurements take place: a migrated database and the topics, on the engines of this run."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType
from uuid import uuid4

import psycopg
import requests
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from shared.db.schema import migrate
from shared.kafka.topic_check import ensure_topics
from shared.settings import DatabaseSettings, KafkaSettings
from shared.topics import ALL_TOPICS
from stack.engines import Engines
from stack.free_ports import find_free_ports
from stack.options import read_options


class World:
    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    def empty_database(self) -> DatabaseSettings:
        """A new database, migrated, with no rows and no statistics."""
        name = f"bench_{uuid4().hex[:8]}"
        with psycopg.connect(self._engines.database_url, autocommit=True) as connection:
            connection.execute(f'create database "{name}"'.encode())
        url = f"{self._engines.database_url.rsplit('/', 1)[0]}/{name}"
        migrate(url)
        return DatabaseSettings(
            url, pool_size=8, connect_timeout_s=3, pool_timeout_s=2.0, statement_timeout_s=60
        )

    def empty_topics(self) -> KafkaSettings:
        settings = KafkaSettings(
            self._engines.kafka_bootstrap_servers, f"{uuid4().hex[:8]}.", 1, MappingProxyType({})
        )
        ensure_topics(settings, ALL_TOPICS)
        return settings

    @contextmanager
    def service(
        self, module: str, database: DatabaseSettings, kafka: KafkaSettings
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """One of our services as the process it is, once it is ready."""
        port = find_free_ports(1)[0]
        environment = {
            **read_options().inherited,
            "DATABASE_URL": database.url,
            "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
            "KAFKA_TOPIC_PREFIX": kafka.topic_prefix,
            "HTTP_PORT": str(port),
            "MIZAN_LOG_LEVEL": "WARNING",
        }
        process = subprocess.Popen([sys.executable, "-m", module], env=environment)
        try:
            _until_ready(port)
            yield process
        finally:
            process.terminate()
            process.wait(30)


def _until_ready(port: int) -> None:
    for attempt in Retrying(
        wait=wait_fixed(0.1),
        stop=stop_after_delay(30),
        retry=retry_if_exception_type(requests.RequestException),
    ):
        with attempt:
            requests.get(f"http://127.0.0.1:{port}/readyz", timeout=5).raise_for_status()
