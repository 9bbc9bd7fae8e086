"""The real PostgreSQL and Kafka of a test run: embedded, in Docker, or given by the environment."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from shared.domain.kafka_principals import ADMIN
from shared.platform.database.roles import ROLE_NAMES, prepare_roles
from stack.broker import BROKER_PRINCIPAL, access_settings
from stack.engines import Engines, embedded_engines
from stack.kafka import USERS, count_brokers, set_users
from stack.kafka_passwords import KafkaLogins, ensure_passwords
from stack.ports import HOST, find_free_ports
from stack.postgres import is_answering
from tests.database_roles import password_of
from tests.logs import attach_log
from tests.waiting import eventually


@dataclass(frozen=True)
class TestEngines:
    """`embedded` is set if this run may kill and restart the engines."""

    database_url: str
    kafka_bootstrap_servers: str
    kafka_logins: KafkaLogins | None
    """How each principal logs in to Kafka; None if the Kafka of the environment has neither passwords nor ACLs."""
    embedded: Engines | None = None

    __test__ = False

    def kafka_client(self, principal: str = ADMIN.name) -> dict[str, str]:
        """Return the settings with which a principal logs in to Kafka."""
        return self.kafka_logins.client(principal) if self.kafka_logins else {}


_MEMORY = Path("/dev/shm")  # noqa: S108  a file system, not a file with a name that others can guess
_NEEDED_SPACE = 8 * 1024**3


@contextmanager
def engine_directory() -> Iterator[Path]:
    """Yield a directory for the engines, in memory if there is space: topics and databases are created 3 times faster.

    pytest's own directory does not work: each run of pytest makes it unreadable for the account of PostgreSQL.
    """
    for orphan in _MEMORY.glob("mizan-engines-[0-9]*-*"):  # left by a run that was killed
        if not psutil.pid_exists(int(orphan.name.split("-")[2])):
            shutil.rmtree(orphan, ignore_errors=True)
    has_space = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _NEEDED_SPACE
    prefix = f"mizan-engines-{os.getpid()}-"
    with TemporaryDirectory(prefix=prefix, dir=_MEMORY if has_space else None) as directory:
        yield Path(directory)


@contextmanager
def start_embedded(directory: Path) -> Iterator[TestEngines]:
    with embedded_engines(directory) as engines:
        for log in ("postgres.log", "kafka.log"):
            attach_log(directory / log)
        prepare_test_roles(engines.database_url)
        yield TestEngines(
            engines.database_url, engines.kafka_bootstrap_servers, engines.kafka_logins, engines
        )


def prepare_test_roles(url: str) -> None:
    """Create Mizan's roles with the passwords of tests, and make logins cheap.

    Passwords are hashed once instead of 4096 times at each login: tests open thousands of connections.
    """
    parts = conninfo_to_dict(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set scram_iterations = 1")
        prepare_roles(connection, {name: password_of(name) for name in ROLE_NAMES})
        connection.execute(
            sql.SQL("alter role {} password {}").format(
                sql.Identifier(str(parts["user"])), sql.Literal(parts["password"])
            )
        )


@contextmanager
def start_in_docker(postgres_image: str, kafka_image: str, password_directory: Path) -> Iterator[TestEngines]:
    # Imported here, so that runs without Docker do not need this library.
    from testcontainers.core.config import testcontainers_config  # noqa: PLC0415
    from testcontainers.core.container import DockerContainer  # noqa: PLC0415
    from testcontainers.core.network import Network  # noqa: PLC0415

    if not _can_pull(testcontainers_config.ryuk_image):
        # Ryuk only removes the containers of a killed run, so tests work without it.
        testcontainers_config.ryuk_disabled = True
    postgres_port, kafka_port = find_free_ports(2)
    postgres = DockerContainer(postgres_image)
    for name in ("USER", "PASSWORD", "DB"):
        postgres.with_env(f"POSTGRES_{name}", "mizan")
    passwords = ensure_passwords(password_directory, [BROKER_PRINCIPAL, *USERS])
    kafka = DockerContainer(kafka_image)
    for name, value in _broker_settings(kafka_port, passwords[BROKER_PRINCIPAL]).items():
        kafka.with_env(f"KAFKA_{name}", value)
    # Fixed ports, because a broker must know its advertised address before it starts. The library has no option to
    # bind to this machine only, and its types do not allow it.
    postgres.ports = {"5432": (HOST, postgres_port)}  # type: ignore[dict-item]
    kafka.ports = {"9092": (HOST, kafka_port)}  # type: ignore[dict-item]
    # A separate network: the default one is shared with all other containers.
    with Network() as network, postgres.with_network(network), kafka.with_network(network):
        url = f"postgresql://mizan:mizan@{HOST}:{postgres_port}/mizan"
        servers = f"{HOST}:{kafka_port}"
        eventually(lambda: is_answering(url), within=120)
        logins = KafkaLogins(password_directory)
        eventually(lambda: set_users(servers, passwords), within=120)
        eventually(lambda: count_brokers(servers, logins.client(ADMIN.name)) == 1, within=120)
        prepare_test_roles(url)
        yield TestEngines(url, servers, logins)


def _can_pull(image: str) -> bool:
    from docker import from_env  # noqa: PLC0415
    from docker.errors import DockerException, ImageNotFound  # noqa: PLC0415

    client = from_env()
    try:
        client.images.get(image)
    except ImageNotFound:
        try:
            client.images.pull(image)
        except DockerException:
            return False
    finally:
        client.close()
    return True


def _broker_settings(port: int, password: str) -> dict[str, str]:
    """Return the variables of the broker's container, without KAFKA_ before them. Its access is that of the stack."""
    access = {
        name.upper().replace("-", "___").replace(".", "_"): value
        for name, value in access_settings(password).items()
    }
    return {
        **access,
        "NODE_ID": "1",
        "PROCESS_ROLES": "broker,controller",
        "LISTENERS": "CLIENT://:9092,CONTROLLER://:9093",
        "ADVERTISED_LISTENERS": f"CLIENT://{HOST}:{port}",
        "LISTENER_SECURITY_PROTOCOL_MAP": "CLIENT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "INTER_BROKER_LISTENER_NAME": "CLIENT",
        "CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "AUTO_CREATE_TOPICS_ENABLE": "false",
    }
