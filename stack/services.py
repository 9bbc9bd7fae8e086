"""The services of the stack, in start order, and the jobs that run, all at once, before them."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from shared.domain.kafka_principals import ADMIN, CHECKOUT_VERIFIER, MONITOR, SCHEDULER, WEBHOOKS
from shared.platform.keys import PROCESS_PURPOSES
from shared.platform.settings import KeyPurpose

SANDBOX_PORT = 7


@dataclass(frozen=True)
class Service:
    """A service. It is ready once GET /readyz on its port, PORT_BASE + `port_offset`, responds with 200."""

    name: str
    port_offset: int
    command: tuple[str, ...]
    stack_keys: Mapping[str, str] = field(default_factory=dict)
    """Its entries in stack.json: key → address, where {port} is its port."""
    has_workers: bool = False
    """Whether it runs several processes, which collect their metrics in a shared directory."""
    kafka_principal: str | None = None
    """Who it is to Kafka. A service without a principal does not learn where Kafka is."""
    in_production: bool = True
    """Whether `make run` starts it with MIZAN_ENV=production, too. Compose files decide for themselves."""
    key_purposes: frozenset[KeyPurpose] = frozenset()
    """The purposes whose keys it gets, and no other program."""
    database_role: str | None = None
    """The role of PostgreSQL that it connects as; None: it has no database."""
    package_directory: str | None = None
    """A directory of the project with a package that it imports, and that is not installed."""

    def addresses(self, port_base: int) -> dict[str, str]:
        port = port_base + self.port_offset
        return {key: address.format(port=port) for key, address in self.stack_keys.items()}


@dataclass(frozen=True)
class Job:
    """A command that runs once, after the engines are ready and before the services start."""

    name: str
    command: tuple[str, ...]
    kafka_principal: str | None = None
    database_role: str | None = None


JOBS = (
    Job("migrate", (sys.executable, "-m", "mizan", "migrate"), database_role="mizan_owner"),
    Job("topics", (sys.executable, "-m", "mizan", "topics"), ADMIN.name),
)

# Public addresses: environment variable → offset from PORT_BASE.
PUBLIC_URLS = MappingProxyType(
    {"API_PUBLIC_URL": 1, "CHECKOUT_PUBLIC_URL": 2, "DASHBOARD_PUBLIC_URL": 3, "MONITOR_PUBLIC_URL": 4}
)

SERVICES = (
    Service(
        "api",
        1,
        (sys.executable, "-m", "services.api"),
        MappingProxyType(
            {
                "api_base_url": "http://127.0.0.1:{port}/api/v1",
                "api_reference_url": "http://127.0.0.1:{port}/docs",
                "documentation_url": "http://127.0.0.1:{port}/docs/en/",
            }
        ),
        has_workers=True,
        database_role="mizan_api",
    ),
    Service(
        "sandbox",
        SANDBOX_PORT,
        (sys.executable, "-m", "services.sandbox"),
        MappingProxyType({"sandbox_url": "http://127.0.0.1:{port}"}),
        in_production=False,
    ),
    Service(
        "checkout",
        2,
        (sys.executable, "-m", "services.checkout"),
        MappingProxyType({"checkout_url": "http://127.0.0.1:{port}"}),
        has_workers=True,
        key_purposes=PROCESS_PURPOSES["checkout"],
        database_role="mizan_checkout",
    ),
    Service(
        "checkout-verifier",
        9,
        (sys.executable, "-m", "services.checkout.verification"),
        MappingProxyType({"checkout_verifier_url": "http://127.0.0.1:{port}"}),
        key_purposes=PROCESS_PURPOSES["checkout-verifier"],
        kafka_principal=CHECKOUT_VERIFIER.name,
        database_role="mizan_checkout",
    ),
    Service(
        "dashboard",
        3,
        (sys.executable, "-m", "services.dashboard"),
        MappingProxyType({"dashboard_url": "http://127.0.0.1:{port}"}),
        has_workers=True,
        key_purposes=PROCESS_PURPOSES["dashboard"],
        database_role="mizan_dashboard",
    ),
    Service(
        "webhooks",
        5,
        (sys.executable, "-m", "services.webhooks"),
        MappingProxyType({"webhooks_url": "http://127.0.0.1:{port}"}),
        key_purposes=PROCESS_PURPOSES["webhooks"],
        kafka_principal=WEBHOOKS.name,
        database_role="mizan_webhooks",
    ),
    Service(
        "scheduler",
        6,
        (sys.executable, "-m", "services.scheduler"),
        MappingProxyType({"scheduler_url": "http://127.0.0.1:{port}"}),
        kafka_principal=SCHEDULER.name,
        database_role="mizan_scheduler",
    ),
    Service(
        "monitor",
        4,
        (sys.executable, "-m", "services.monitor"),
        MappingProxyType({"monitor_url": "http://127.0.0.1:{port}"}),
        key_purposes=PROCESS_PURPOSES["monitor"],
        kafka_principal=MONITOR.name,
        database_role="mizan_monitor",
    ),
)

SHOP = Service(
    "shop",
    8,
    (sys.executable, "-m", "examples.shop"),
    MappingProxyType({"shop_url": "http://127.0.0.1:{port}"}),
    in_production=False,
    package_directory="clients/python",
)
"""A merchant's program, not ours: it is neither monitored nor measured."""
