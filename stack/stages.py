"""The stages of a start, laid out from the options: the engines that are ours, then the services."""

import http.client
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stack.class_cache import ensure_class_cache
from stack.engine_ports import EnginePorts
from stack.given_engines import check_given_database, check_given_kafka
from stack.jars import ensure_jars
from stack.kafka import KafkaCluster
from stack.options import Options
from stack.postgres import Postgres
from stack.programs import Program, broker_program, postgres_program, service_program
from stack.services import Service
from stack.waiting import wait_until

SERVICE_SECONDS = 60
Running = Callable[[], bool]


@dataclass(frozen=True)
class Stage:
    """Programs that start together, and how to wait for the real readiness of each."""

    title: str
    programs: tuple[Program, ...]
    wait_ready: Callable[[Program, Path, Running], None]


@dataclass(frozen=True)
class Engine:
    """PostgreSQL or Kafka as the services see it; `stage` is None when it was given from outside."""

    address: str
    stage: Stage | None
    notes: tuple[str, ...] = ()


def database_engine(options: Options) -> Engine:
    if options.database_url is not None:
        check_given_database(options.database_url)
        return Engine(options.database_url, None)
    ports = EnginePorts(options.directory, options.port_base)
    server = Postgres(options.directory / "postgres", ports.postgres())
    notes = server.prepare()
    stage = Stage(
        "PostgreSQL", (postgres_program(server),), lambda _, log, running: server.wait_ready(log, running)
    )
    return Engine(server.url, stage, tuple(notes))


def kafka_engine(options: Options) -> Engine:
    if options.kafka_bootstrap_servers is not None:
        check_given_kafka(options.kafka_bootstrap_servers)
        return Engine(options.kafka_bootstrap_servers, None)
    ports = EnginePorts(options.directory, options.port_base).brokers(options.brokers)
    jars = ensure_jars(options.cache)
    ensure_class_cache(jars)
    cluster = KafkaCluster(options.directory / "kafka", ports, jars)
    cluster.prepare()
    stage = Stage(
        "Kafka",
        tuple(broker_program(broker) for broker in cluster.brokers),
        lambda _, log, running: cluster.wait_ready(log, running),
    )
    return Engine(cluster.bootstrap_servers, stage)


def service_stage(services: Sequence[Service], options: Options) -> Stage:
    programs = tuple(service_program(service, options.port_base, options.directory) for service in services)
    return Stage("Services", programs, _wait_for_service)


def _wait_for_service(program: Program, log: Path, running: Running) -> None:
    port = int(program.environment["HTTP_PORT"])
    wait_until(lambda: says_ready(port), name=program.name, log=log, seconds=SERVICE_SECONDS, running=running)


def says_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
