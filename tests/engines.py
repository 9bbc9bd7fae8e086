"""Which real PostgreSQL and Kafka a test run stands on: embedded, in Docker, or given by the environment."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stack.engines import Engines, embedded_engines


@dataclass(frozen=True)
class TestEngines:
    """`embedded` is there when this run may kill and restart the engines."""

    database_url: str
    kafka_bootstrap_servers: str
    embedded: Engines | None = None

    __test__ = False


@contextmanager
def start_embedded(directory: Path) -> Iterator[TestEngines]:
    with embedded_engines(directory) as engines:
        yield TestEngines(engines.database_url, engines.kafka_bootstrap_servers, engines)


@contextmanager
def start_in_docker(postgres_image: str, kafka_image: str) -> Iterator[TestEngines]:
    # Imported here: without Docker this library must not be needed.
    from testcontainers.kafka import KafkaContainer  # noqa: PLC0415
    from testcontainers.postgres import PostgresContainer  # noqa: PLC0415

    with (
        PostgresContainer(
            postgres_image, username="mizan", password="mizan", dbname="mizan", driver=None
        ) as pg,
        KafkaContainer(kafka_image).with_kraft() as kafka,
    ):
        yield TestEngines(pg.get_connection_url(), kafka.get_bootstrap_server())
