"""The world of a test: one PostgreSQL and one Kafka for the run, a database and a topic prefix for each test."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from uuid import UUID, uuid4

import psycopg
import pytest
from cryptography.fernet import Fernet
from psycopg.conninfo import conninfo_to_dict

from shared.db.migrate import migrate
from shared.db.pool import Database
from shared.kafka.topic_check import ensure_topics
from shared.settings import (
    ApiSettings,
    CheckoutSettings,
    DatabaseSettings,
    Environment,
    KafkaSettings,
    KeptSettings,
    PublicUrls,
    Settings,
    WebhookSettings,
)
from shared.topics import Topic
from stack.engines import Engines
from tests.clock import Clock
from tests.engines import TestEngines, start_embedded, start_in_docker

CHECKOUT = "https://pay.mizan.example"


@pytest.fixture(scope="session")
def engines() -> Iterator[TestEngines]:
    """Given by DATABASE_URL and KAFKA_BOOTSTRAP_SERVERS, or made by Docker, or (the default) embedded."""
    given = os.environ.get("DATABASE_URL"), os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if given[0] and given[1]:
        yield TestEngines(given[0], given[1])
    elif os.environ.get("MIZAN_TEST_STACK") == "docker":
        images = (
            os.environ.get("POSTGRES_IMAGE", "postgres:18"),
            os.environ.get("KAFKA_IMAGE", "apache/kafka:4.3.1"),
        )
        with start_in_docker(*images) as made:
            yield made
    else:
        # Not pytest's directory: each run of pytest closes it again to the account that PostgreSQL runs under.
        with (
            TemporaryDirectory(prefix="mizan-engines-") as directory,
            start_embedded(Path(directory)) as made,
        ):
            yield made


@pytest.fixture
def breakable(engines: TestEngines) -> Iterator[Engines]:
    """The engines, for a test that kills and restarts them; whatever happened, the next test finds them running."""
    if engines.embedded is None:
        pytest.skip("this run stands on servers that are not ours to kill")
    yield engines.embedded
    engines.embedded.kafka.start()
    if not engines.embedded.postgres.running():
        engines.embedded.postgres.start()


@pytest.fixture(scope="session")
def template_database(engines: TestEngines) -> Iterator[str]:
    """A migrated database that the tests' own are copied from."""
    name = f"mizan_template_{uuid4().hex[:8]}"
    _administrate(engines.database_url, f'create database "{name}"')
    migrate(_with_database(engines.database_url, name))
    yield name
    _administrate(engines.database_url, f'drop database "{name}" with (force)')


@pytest.fixture
def database_settings(engines: TestEngines, template_database: str) -> Iterator[DatabaseSettings]:
    name = f"mizan_{uuid4().hex[:12]}"
    _administrate(engines.database_url, f'create database "{name}" template "{template_database}"')
    yield DatabaseSettings(
        url=_with_database(engines.database_url, name),
        pool_size=8,
        connect_timeout_s=3,
        pool_timeout_s=2.0,
        statement_timeout_s=15,
    )
    _administrate(engines.database_url, f'drop database "{name}" with (force)')


@pytest.fixture
def database(database_settings: DatabaseSettings) -> Iterator[Database]:
    made = Database(database_settings, "test")
    yield made
    made.close()


@pytest.fixture
def clock(database: Database) -> Clock:
    """The database's clock, turned by hand."""
    return Clock(database)


@pytest.fixture
def application_id(database: Database) -> UUID:
    with database.transaction() as connection:
        row = connection.execute(
            """with merchant as (insert into merchants (name) values ('Tripoli Coffee') returning id)
               insert into applications (merchant_id, name) select id, 'shop' from merchant returning id"""
        ).fetchone()
    assert row is not None
    return UUID(str(row[0]))


@pytest.fixture
def kafka_settings(engines: TestEngines) -> KafkaSettings:
    return KafkaSettings(
        bootstrap_servers=engines.kafka_bootstrap_servers,
        topic_prefix=f"t{uuid4().hex[:8]}.",
        replication_factor=1,
        # So that a killed consumer's partitions are given away soon.
        client=MappingProxyType({"session.timeout.ms": "6000", "log_level": "0"}),
    )


@pytest.fixture
def settings(database_settings: DatabaseSettings, kafka_settings: KafkaSettings) -> Settings:
    return Settings(
        environment=Environment.TEST,
        database=database_settings,
        kafka=kafka_settings,
        public_urls=PublicUrls(api="https://api.mizan.example", checkout=CHECKOUT),
        api=ApiSettings(workers=2, threads=8, rate_limit=0.0, rate_burst=100),
        kept=KeptSettings(),
        secret_keys=(Fernet.generate_key().decode(),),
        webhooks=WebhookSettings(),
        checkout=CheckoutSettings(),
        sandbox=None,
        http_host="127.0.0.1",
        http_port=0,
        log_format="json",
        log_level="INFO",
        metrics_dir=None,
    )


@pytest.fixture
def make_topics(kafka_settings: KafkaSettings) -> Callable[[Sequence[Topic]], None]:
    def make(topics: Sequence[Topic]) -> None:
        ensure_topics(kafka_settings, topics)

    return make


@pytest.fixture
def repository_root() -> Path:
    return Path(__file__).parent.parent


def _administrate(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def _with_database(url: str, name: str) -> str:
    parts = conninfo_to_dict(url)
    password = f":{parts['password']}" if parts.get("password") else ""
    return f"postgresql://{parts['user']}{password}@{parts['host']}:{parts['port']}/{name}"
