"""Which real PostgreSQL and Kafka a test run stands on: embedded, in Docker, or given by the environment."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stack.engines import Engines, embedded_engines
from stack.free_ports import find_free_ports
from stack.kafka import count_brokers
from stack.postgres import answers
from tests.waiting import eventually


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
    # Imported here: without Docker nobody should need this library.
    from testcontainers.core.container import DockerContainer  # noqa: PLC0415

    postgres_port, kafka_port = find_free_ports(2)
    postgres = DockerContainer(postgres_image).with_bind_ports(5432, postgres_port)
    for name in ("USER", "PASSWORD", "DB"):
        postgres.with_env(f"POSTGRES_{name}", "mizan")
    # Fixed ports, because a broker must know the address that it tells its clients before it starts.
    kafka = DockerContainer(kafka_image).with_bind_ports(9092, kafka_port)
    for name, value in _broker_settings(kafka_port).items():
        kafka.with_env(f"KAFKA_{name}", value)
    with postgres, kafka:
        url = f"postgresql://mizan:mizan@127.0.0.1:{postgres_port}/mizan"
        servers = f"127.0.0.1:{kafka_port}"
        eventually(lambda: answers(url), within=120)
        eventually(lambda: count_brokers(servers) == 1, within=120)
        yield TestEngines(url, servers)


def _broker_settings(port: int) -> dict[str, str]:
    return {
        "NODE_ID": "1",
        "PROCESS_ROLES": "broker,controller",
        "LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "ADVERTISED_LISTENERS": f"PLAINTEXT://127.0.0.1:{port}",
        "LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "AUTO_CREATE_TOPICS_ENABLE": "false",
    }
