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

SERVICES = (
    Service(
        "scheduler",
        6,
        (sys.executable, "-m", "services.scheduler"),
        MappingProxyType({"scheduler_url": "http://127.0.0.1:{port}"}),
    ),
)
