"""The table of what runs on the engines: every service of the stack, in the order in which they start."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class Service:
    """One service. It is ready once GET /readyz on its port, PORT_BASE + `port_offset`, answers 200."""

    name: str
    port_offset: int
    command: tuple[str, ...]
    stack_keys: Mapping[str, str] = field(default_factory=dict)
    """What it adds to stack.json: key → address, where {port} is its port."""
    has_workers: bool = False
    """Whether it is several processes, which count together in a directory that they share."""
    in_production: bool = True

    def addresses(self, port_base: int) -> dict[str, str]:
        port = port_base + self.port_offset
        return {key: address.format(port=port) for key, address in self.stack_keys.items()}


@dataclass(frozen=True)
class Job:
    """Something that runs once, to its end, after the engines are ready and before the services start."""

    name: str
    command: tuple[str, ...]


JOBS = (
    Job("migrate", (sys.executable, "-m", "mizan", "migrate")),
    Job("topics", (sys.executable, "-m", "mizan", "topics")),
)

# Where the outside reaches them: environment variable → offset from PORT_BASE (DESIGN §5).
PUBLIC_URLS = MappingProxyType(
    {"API_PUBLIC_URL": 1, "CHECKOUT_PUBLIC_URL": 2, "DASHBOARD_PUBLIC_URL": 3, "MONITOR_PUBLIC_URL": 4}
)
SANDBOX_PORT = 7

SERVICES = (
    Service(
        "api",
        1,
        (sys.executable, "-m", "services.api"),
        MappingProxyType(
            {
                "api_base_url": "http://127.0.0.1:{port}/api/v1",
                "api_reference_url": "http://127.0.0.1:{port}/docs",
            }
        ),
        has_workers=True,
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
    ),
    Service(
        "checkout-verifier",
        9,
        (sys.executable, "-m", "services.checkout.verification"),
        MappingProxyType({"checkout_verifier_url": "http://127.0.0.1:{port}"}),
    ),
    Service(
        "dashboard",
        3,
        (sys.executable, "-m", "services.dashboard"),
        MappingProxyType({"dashboard_url": "http://127.0.0.1:{port}"}),
        has_workers=True,
    ),
    Service(
        "webhooks",
        5,
        (sys.executable, "-m", "services.webhooks"),
        MappingProxyType({"webhooks_url": "http://127.0.0.1:{port}"}),
    ),
    Service(
        "scheduler",
        6,
        (sys.executable, "-m", "services.scheduler"),
        MappingProxyType({"scheduler_url": "http://127.0.0.1:{port}"}),
    ),
    Service(
        "monitor",
        4,
        (sys.executable, "-m", "services.monitor"),
        MappingProxyType({"monitor_url": "http://127.0.0.1:{port}"}),
    ),
)

SHOP = Service(
    "shop",
    8,
    (sys.executable, "-m", "examples.shop"),
    MappingProxyType({"shop_url": "http://127.0.0.1:{port}"}),
    in_production=False,
)
"""A merchant's, not ours: nobody measures or watches it."""
