"""The phases of a start: engines (embedded, or external and checked), one-off jobs, the demo application, services."""

import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from shared.platform.database.roles import OWNER
from shared.platform.process import EX_CONFIG
from stack.broker import class_cache_path
from stack.database_roles import (
    RoleUrls,
    ensure_role_passwords,
    external_urls,
    prepare_embedded_roles,
    urls_with_passwords,
)
from stack.errors import StackError
from stack.jars import ensure_jars
from stack.kafka import KafkaCluster
from stack.kafka_passwords import KafkaLogins
from stack.options import Options
from stack.ports import EnginePorts
from stack.postgres import Postgres
from stack.processes import process_tree, send_signal, wait_until
from stack.programs import (
    DEMO_FILE,
    PROJECT,
    Program,
    broker_program,
    kafka_environment,
    postgres_program,
    service_program,
)
from stack.services import Job, Service

SERVICE_SECONDS = 120

CONNECT_SECONDS = 5


def check_external_database(url: str) -> None:
    """Raise StackError if the database of DATABASE_URL cannot be used. The error never contains the password."""
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
            connection.execute("select 1")
    except psycopg.Error as error:
        raise StackError(
            f"The database of DATABASE_URL ({_address(url)}) cannot be used: {_without_password(url, error)}",
            "Start that server or correct DATABASE_URL; without DATABASE_URL, PostgreSQL is embedded.",
        ) from None


def check_external_kafka(bootstrap_servers: str) -> None:
    """Raise StackError if no server of KAFKA_BOOTSTRAP_SERVERS accepts connections.

    Only the services know how to authenticate (SASL, TLS), so this does not log in.
    """
    reasons = []
    for server in bootstrap_servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
        except OSError as error:
            reasons.append(f"{server}: {error}")
        else:
            return
    raise StackError(
        f"No server of KAFKA_BOOTSTRAP_SERVERS can be reached ({'; '.join(reasons)}).",
        "Start one or correct KAFKA_BOOTSTRAP_SERVERS; without it, Kafka is embedded.",
    )


def _parts(url: str) -> dict[str, str]:
    try:
        return {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.Error:
        return {}


def _address(url: str) -> str:
    parts = _parts(url)
    hosts, ports = parts.get("host", "default host").split(","), parts.get("port", "5432").split(",")
    servers = zip(hosts, ports * len(hosts) if len(ports) == 1 else ports, strict=False)
    return f"{','.join(f'{host}:{port}' for host, port in servers)}/{parts.get('dbname', '')}"


def _without_password(url: str, error: psycopg.Error) -> str:
    password = _parts(url).get("password")
    text = " ".join(str(error).split())
    # psycopg quotes an address that it cannot parse, with the password.
    if not password:
        return "the address is not valid or the server refuses it" if "@" in text else text
    return text.replace(password, "***")


Running = Callable[[], bool]


@dataclass(frozen=True)
class StartupPhase:
    """Programs that start together, and how to wait until each is ready."""

    title: str
    programs: tuple[Program, ...]
    wait_ready: Callable[[Program, Path, Running], None]


@dataclass(frozen=True)
class Engine:
    """PostgreSQL or Kafka as the services see it. `phase` is None if the engine is external."""

    address: str
    phase: StartupPhase | None
    notes: tuple[str, ...] = ()
    logins: KafkaLogins | None = None
    """Of Kafka; None if all clients use the settings that we inherited."""
    later: Job | None = None
    """Runs once everything is ready, beside the stack."""


def prepare_database(options: Options) -> tuple[Engine, RoleUrls]:
    """Return the database as its owner sees it, and the addresses for each role."""
    directory = options.directory / "database_urls"
    if options.database_url is not None:
        urls = external_urls(options.database_url, options.database_role_passwords_file)
        check_external_database(urls[OWNER])
        return Engine(urls[OWNER], None), RoleUrls(urls, directory)
    ports = EnginePorts(options.directory, options.port_base)
    server = Postgres(options.directory / "postgres", ports.postgres())
    notes = server.prepare()
    passwords = ensure_role_passwords(options.directory / "role_passwords")

    def wait_ready(_program: Program, log: Path, running: Running) -> None:
        server.wait_ready(log, running)
        prepare_embedded_roles(server.url, passwords)

    phase = StartupPhase("PostgreSQL", (postgres_program(server),), wait_ready)
    urls = urls_with_passwords(server.url, passwords)
    return Engine(urls[OWNER], phase, tuple(notes)), RoleUrls(urls, directory)


def prepare_kafka(options: Options) -> Engine:
    if options.kafka_bootstrap_servers is not None:
        check_external_kafka(options.kafka_bootstrap_servers)
        protocol = options.inherited.get("KAFKA_CLIENT_SECURITY_PROTOCOL", "SASL_PLAINTEXT")
        logins = KafkaLogins(options.kafka_passwords, protocol) if options.kafka_passwords else None
        return Engine(options.kafka_bootstrap_servers, None, logins=logins)
    ports = options.broker_ports or EnginePorts(options.directory, options.port_base).brokers(options.brokers)
    jars = ensure_jars(options.cache)
    cluster = KafkaCluster(options.directory / "kafka", ports, jars)
    cluster.prepare()
    phase = StartupPhase(
        "Kafka",
        tuple(broker_program(broker) for broker in cluster.brokers),
        lambda _, log, running: cluster.wait_ready(log, running),
    )
    write_cache = Job("kafka-class-cache", (sys.executable, "-m", "stack.kafka", str(options.cache)))
    return Engine(
        cluster.bootstrap_servers,
        phase,
        logins=KafkaLogins(cluster.password_directory),
        later=None if class_cache_path(jars).exists() else write_cache,
    )


def services_phase(
    services: Sequence[Service], options: Options, urls: RoleUrls, kafka: Engine
) -> StartupPhase:
    programs = tuple(
        service_program(
            service,
            options,
            urls,
            kafka_environment(options, kafka.address, kafka.logins, service.kafka_principal),
        )
        for service in services
    )
    return StartupPhase("Services", programs, _wait_for_service)


def _wait_for_service(program: Program, log: Path, running: Running) -> None:
    port = int(program.environment["HTTP_PORT"])
    wait_until(lambda: is_ready(port), name=program.name, log=log, seconds=SERVICE_SECONDS, running=running)


def is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextmanager
def started_job(job: Job, environment: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a job. It is killed if it still runs when the context ends."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            job.command,
            env=dict(environment),
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            send_signal(signal.SIGKILL, process_tree(process.pid))
            process.wait()


def wait_for_job(name: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a job has ended. Raises StackError with its output if it failed."""
    status = process.wait()
    if status == EX_CONFIG:
        raise StackError(
            log.read_text(errors="replace").strip(),
            "Correct them in the environment and start again.",
        )
    if status != 0:
        output_text = log.read_text(errors="replace").strip()
        raise StackError(
            f"{name} failed with exit status {status}. Its output:\n{output_text}",
            f"Fix the cause and start again. Its output is also in {log}.",
        )


Demo = Mapping[str, str]
_DEMO_KEYS = (
    "application_id",
    "api_key",
    "access_token",
    "webhook_secret",
    "owner_email",
    "owner_password",
    "operator_email",
    "operator_password",
)
"""The keys of `demo` in stack.json."""


def ensure_demo(directory: Path, environment: Mapping[str, str]) -> Demo:
    """Create the demo application if there is none. Return its credentials and the passwords of its users.

    Only the file that `mizan demo` writes contains them. Raises StackError if the command fails.
    """
    path = directory / DEMO_FILE
    webhook_url = f"{environment['SHOP_PUBLIC_URL']}/webhooks/mizan"
    command = (sys.executable, "-m", "mizan", "demo", "--file", str(path), "--webhook-url", webhook_url)
    made = subprocess.run(
        command, env=dict(environment), cwd=PROJECT, capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        raise StackError(
            f"The demo application could not be created. The output:\n{made.stderr.strip()}",
            "Fix the cause and start again.",
        )
    known: dict[str, str] = json.loads(path.read_text())
    return {name: known[name] for name in _DEMO_KEYS}


def no_demo(_directory: Path, _environment: Mapping[str, str]) -> Demo:
    return {}
