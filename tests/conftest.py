"""Fixtures for all tests: one PostgreSQL and one Kafka per run, one database and one topic prefix per test."""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import hypothesis
import pytest
from cryptography.fernet import Fernet
from psycopg.conninfo import conninfo_to_dict

from shared.domain.kafka_principals import ALL_PRINCIPALS
from shared.platform.database.pool import Database
from shared.platform.kafka.access import Principal
from shared.platform.kafka.topic_definition import Topic
from shared.platform.kafka.topic_setup import ensure_topics
from shared.platform.settings import (
    ApiSettings,
    CheckoutSettings,
    DashboardSettings,
    DatabaseSettings,
    Environment,
    KafkaSettings,
    MonitorSettings,
    PublicUrls,
    RetentionSettings,
    Settings,
    WebhookSettings,
)
from stack import ports
from stack.engines import Engines
from stack.kafka_passwords import KafkaLogins
from tests.clock import Clock
from tests.constants import CHECKOUT_URL
from tests.databases import Databases
from tests.engines import (
    TestEngines,
    engine_directory,
    prepare_test_roles,
    start_embedded,
    start_in_docker,
)
from tests.topics import TopicPool, as_principal, new_prefix, retry_after_restart

# No time limit per example: the machine may be busy.
hypothesis.settings.register_profile(
    "tests", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tests")

# Each worker has its own ports, so that no other worker takes the port of a killed server before it restarts.
_WORKER, _WORKERS = (
    int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")),
    int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")),
)
ports.CANDIDATES = ports.CANDIDATES[_WORKER::_WORKERS]

pytest_plugins = ["pytester", "tests.browser", "tests.progress", "tests.speedups"]


@pytest.fixture(scope="session")
def engines() -> Iterator[TestEngines]:
    """Use DATABASE_URL and KAFKA_BOOTSTRAP_SERVERS if set, else Docker if asked for, else embedded engines."""
    given = os.environ.get("DATABASE_URL"), os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if given[0] and given[1]:
        prepare_test_roles(given[0])
        passwords = os.environ.get("KAFKA_PASSWORDS_DIR")
        yield TestEngines(given[0], given[1], KafkaLogins(Path(passwords)) if passwords else None)
    elif os.environ.get("MIZAN_TEST_STACK") == "docker":
        images = (
            os.environ.get("POSTGRES_IMAGE", "postgres:18"),
            os.environ.get("KAFKA_IMAGE", "apache/kafka:4.3.1"),
        )
        with engine_directory() as directory, start_in_docker(*images, directory / "passwords") as made:
            yield made
    else:
        with engine_directory() as directory, start_embedded(directory) as made:
            yield made


@pytest.fixture
def has_access_control(engines: TestEngines) -> None:
    """Skip the test if the Kafka that is given by the environment lets everybody do everything."""
    if engines.kafka_logins is None:
        pytest.skip("the Kafka of the environment has no access control")


@pytest.fixture
def killable_engines(engines: TestEngines) -> Iterator[Engines]:
    """Engines that the test may kill and restart. They are started again for the next test."""
    if engines.embedded is None:
        pytest.skip("this run uses servers that it must not kill")
    yield engines.embedded
    engines.embedded.kafka.start()
    if not engines.embedded.postgres.running():
        engines.embedded.postgres.start()


@pytest.fixture(scope="session")
def databases(engines: TestEngines) -> Iterator[Databases]:
    made = Databases(engines.database_url)
    yield made
    made.close()


@pytest.fixture
def database_settings(databases: Databases) -> Iterator[DatabaseSettings]:
    """The settings of the owner's connections. tests/database_roles.py has those of the services."""
    name = databases.take()
    yield DatabaseSettings(
        url=databases.url(name),
        pool_size=8,
        connect_timeout_s=3,
        pool_timeout_s=2.0,
        statement_timeout_s=15,
    )
    databases.give_back(name)


@pytest.fixture
def database(database_settings: DatabaseSettings) -> Iterator[Database]:
    made = Database(database_settings, "test")
    yield made
    made.close()


@pytest.fixture
def admin_database(databases: Databases, database_settings: DatabaseSettings) -> Iterator[Database]:
    """The superuser's: for what not even the owner may do, such as turning foreign keys off or ending sessions."""
    name = str(conninfo_to_dict(database_settings.url)["dbname"])
    made = Database(replace(database_settings, url=databases.admin_url(name)), "test")
    yield made
    made.close()


@pytest.fixture
def clock(database: Database) -> Clock:
    """The database's clock, set by the test."""
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


@pytest.fixture(scope="session")
def topic_pool(engines: TestEngines) -> Iterator[TopicPool]:
    made = TopicPool(
        KafkaSettings(
            bootstrap_servers=engines.kafka_bootstrap_servers,
            topic_prefix="",
            replication_factor=1,
            client=MappingProxyType(
                {
                    "heartbeat.interval.ms": "500",
                    "log_level": "0",
                    **engines.kafka_client(),
                }
            ),
        ),
        engines.kafka_logins,
    )
    yield made
    made.close()


@pytest.fixture
def kafka_settings(topic_pool: TopicPool, request: pytest.FixtureRequest) -> Iterator[KafkaSettings]:
    """The admin's settings with a topic prefix for this test alone. The topics exist if the test uses `all_topics`.

    They are for the test itself. Code of a service uses `as_principal(settings, …)`.
    """
    prefix = topic_pool.take() if "all_topics" in request.fixturenames else new_prefix()
    settings = replace(topic_pool.settings, topic_prefix=prefix)
    if any(map(request.node.get_closest_marker, ("kills", "stack", "cluster"))):
        topic_pool.create_acls(settings, *ALL_PRINCIPALS)
    else:
        # An idempotent producer waits half a second for its id, which matters only if a broker fails.
        settings = replace(settings, client={**settings.client, "enable.idempotence": "false"})
    yield settings
    topic_pool.give_back(prefix)


@pytest.fixture
def kafka_as(kafka_settings: KafkaSettings) -> Callable[[Principal], KafkaSettings]:
    """Return the Kafka settings of the test for one principal."""
    return lambda principal: as_principal(kafka_settings, principal)


@pytest.fixture
def all_topics(kafka_settings: KafkaSettings) -> KafkaSettings:
    """The Kafka settings of the test, with all topics created."""
    return kafka_settings


@pytest.fixture
def settings(database_settings: DatabaseSettings, kafka_settings: KafkaSettings) -> Settings:
    return Settings(
        environment=Environment.TEST,
        database=database_settings,
        kafka=kafka_settings,
        public_urls=PublicUrls(api="https://api.mizan.example", checkout=CHECKOUT_URL),
        api=ApiSettings(workers=2, threads=8, rate_limit=0.0, rate_burst=100, refusals_per_minute=0),
        retention=RetentionSettings(),
        secret_keys=(Fernet.generate_key().decode(),),
        webhooks=WebhookSettings(),
        checkout=CheckoutSettings(failures_per_address=100_000),
        dashboard=DashboardSettings(),
        monitor=MonitorSettings(),
        sandbox=None,
        http_host="127.0.0.1",
        http_port=0,
        log_format="json",
        log_level="INFO",
        metrics_dir=None,
    )


@pytest.fixture
def make_topics(kafka_settings: KafkaSettings) -> Callable[[Sequence[Topic]], None]:
    """Create some topics. `all_topics` is faster for a test that can use all of them."""

    @retry_after_restart
    def make(topics: Sequence[Topic]) -> None:
        ensure_topics(kafka_settings, topics)

    return make


@pytest.fixture
def repository_root() -> Path:
    return Path(__file__).parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests with the longest time limits first: one that starts last would keep a single worker busy."""
    items.sort(key=lambda item: -max((mark.args[0] for mark in item.iter_markers("timeout")), default=0))


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Escape lone surrogates in what a test has logged: workers cannot send them to each other."""
    return _sendable((yield))


def _sendable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_sendable(key): _sendable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_sendable(each) for each in value)
    return value
