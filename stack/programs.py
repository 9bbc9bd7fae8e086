"""The programs of a stack, and the environment that they get."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shared.platform.private_files import write_private_file
from stack.broker import Broker
from stack.database_roles import RoleUrls
from stack.kafka_passwords import KafkaLogins
from stack.keys import service_keys, without_keys
from stack.options import Options
from stack.orphans import STACK_DIR_VARIABLE
from stack.postgres import Postgres
from stack.services import PUBLIC_URLS, SANDBOX_PORT, SERVICES, SHOP, Service

NOT_INHERITED = {
    "DATABASE_ADMIN_URL",
    "DATABASE_ADMIN_URL_FILE",
    "DATABASE_ROLE_PASSWORDS_FILE",
    "DATABASE_URL",
    "DATABASE_URL_FILE",
    "KAFKA_BOOTSTRAP_SERVERS",
    "KAFKA_PASSWORDS_DIR",
    "PROMETHEUS_MULTIPROC_DIR",
}
DEVELOPMENT_LIMITS = {
    # All users of a sandbox share its few phone numbers, and all clients the address of this machine.
    "CHECKOUT_CODES_PER_PHONE": "1000",
    "CHECKOUT_FAILURES_PER_ADDRESS": "100000",
    "API_RATE_LIMIT": "100000",
    "API_RATE_BURST": "100000",
    "API_REFUSALS_PER_MINUTE": "100000",
}


def sandbox_environment(directory: Path, url: str) -> Mapping[str, str]:
    return {
        "SANDBOX_URL": url,
        "SANDBOX_SECRET_FILE": str(_sandbox_secret(directory)),
        "SANDBOX_LEDGER": str(directory / "sandbox.sqlite"),
    }


def _sandbox_secret(directory: Path) -> Path:
    path = directory / "sandbox_secret"
    if not path.exists():
        write_private_file(path, secrets.token_urlsafe(32) + "\n")
    return path


PROJECT = Path(__file__).parent.parent
DEMO_FILE = "demo.json"


@dataclass(frozen=True)
class Program:
    """A process under supervisord. The processes of one group are stopped together."""

    name: str
    group: str
    command: tuple[str, ...]
    directory: Path = PROJECT
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_signal: str = "TERM"
    stop_seconds: int = 20


def postgres_program(server: Postgres) -> Program:
    return Program(
        "postgres",
        "postgres",
        tuple(server.command()),
        directory=Path("/"),
        # "Fast shutdown": TERM would wait until every client has disconnected.
        stop_signal="INT",
        stop_seconds=60,
    )


def broker_program(broker: Broker) -> Program:
    # In a cluster without a majority a broker waits in vain. Killing it loses nothing: it recovers from its log.
    stop_seconds = 60 if len(broker.voters) == 1 else 20
    return Program(broker.name, "kafka", tuple(broker.command()), stop_seconds=stop_seconds)


def service_program(
    service: Service, options: Options, urls: RoleUrls, kafka: Mapping[str, str] | None = None
) -> Program:
    """Return the program of a service, with an environment of its own: its port, its database role, its keys, and
    `kafka`, its login."""
    environment = {
        "HTTP_HOST": "127.0.0.1",
        "HTTP_PORT": str(options.port_base + service.port_offset),
        **urls.environment(service.database_role),
        **service_keys(service, options),
        **(kafka or {}),
    }
    if service.has_workers:
        metrics = options.directory / "metrics" / service.name
        metrics.mkdir(parents=True, exist_ok=True)
        environment["PROMETHEUS_MULTIPROC_DIR"] = str(metrics)
    if service.package_directory is not None:
        environment["PYTHONPATH"] = str(PROJECT / service.package_directory)
    # Longer than the web server lets its workers finish their requests.
    return Program(service.name, service.name, service.command, environment=environment, stop_seconds=40)


def kafka_environment(
    options: Options, bootstrap_servers: str, logins: KafkaLogins | None, principal: str | None
) -> dict[str, str]:
    """Return what a principal needs to use Kafka; nothing for a program that does not use it."""
    if principal is None:
        return {}
    embedded = {
        "KAFKA_REPLICATION_FACTOR": str(options.brokers),
        # A service that was killed gets its partitions back at once: it is the only process with this name.
        "KAFKA_CLIENT_GROUP_INSTANCE_ID": principal,
    }
    return {
        "KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
        **(embedded if options.kafka_bootstrap_servers is None else {}),
        **(logins.environment(principal) if logins else {}),
    }


def common_environment(options: Options) -> dict[str, str]:
    """Return the environment of every program: what we inherited, and the mark of this stack.

    Keys, and the logins of the engines, are given to each program by itself.
    """
    inherited = {name: value for name, value in options.inherited.items() if name not in NOT_INHERITED}
    return {
        "MIZAN_ENV": "development",
        **_development_defaults(options),
        **without_keys(inherited),
        "PYTHONUNBUFFERED": "1",
        STACK_DIR_VARIABLE: str(options.directory),
    }


def _development_defaults(options: Options) -> dict[str, str]:
    """Return the defaults of a development stack: local addresses, webhooks to this machine, a sandbox and the shop."""
    urls = {name: f"http://127.0.0.1:{options.port_base + offset}" for name, offset in PUBLIC_URLS.items()}
    urls["MONITOR_TARGETS"] = _monitor_targets(options)
    if options.is_production:
        return urls
    sandbox_url = f"http://127.0.0.1:{options.port_base + SANDBOX_PORT}"
    return {
        **urls,
        "WEBHOOK_ALLOW_PRIVATE": "true",
        **DEVELOPMENT_LIMITS,
        **sandbox_environment(options.directory, sandbox_url),
        **_shop_environment(options),
    }


def _shop_environment(options: Options) -> dict[str, str]:
    """Return the settings of the demo shop: the address of the API, and its own credentials."""
    address = f"http://127.0.0.1:{options.port_base + SHOP.port_offset}"
    return {
        "SHOP_PUBLIC_URL": address,
        "SHOP_MIZAN_URL": f"http://127.0.0.1:{options.port_base + PUBLIC_URLS['API_PUBLIC_URL']}/api/v1",
        "SHOP_DASHBOARD_URL": f"http://127.0.0.1:{options.port_base + PUBLIC_URLS['DASHBOARD_PUBLIC_URL']}",
        "SHOP_CREDENTIALS_FILE": str(options.directory / DEMO_FILE),
        "SHOP_DATABASE": str(options.directory / "shop.sqlite"),
    }


def _monitor_targets(options: Options) -> str:
    """Return the services that the monitor checks, as MONITOR_TARGETS."""
    return ",".join(
        f"{service.name}=http://127.0.0.1:{options.port_base + service.port_offset}"
        for service in SERVICES
        if service.in_production or not options.is_production
    )
