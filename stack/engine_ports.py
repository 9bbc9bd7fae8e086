"""The ports of PostgreSQL and Kafka: free ones, remembered, and used again while they are still free."""

import json
from pathlib import Path

from stack.broker import BrokerPorts
from stack.free_ports import find_free_ports, is_free

# More than any stack has services: ports that look free now, and are meant for what starts later.
SERVICE_PORTS = 20


class EnginePorts:
    """Ports by name, kept in a file of the stack's directory; never one that a service of this stack will want."""

    def __init__(self, directory: Path, port_base: int) -> None:
        self._path = directory / "ports.json"
        self._reserved = range(port_base, port_base + SERVICE_PORTS)

    def postgres(self) -> int:
        return self._port("postgres")

    def brokers(self, count: int) -> list[BrokerPorts]:
        return [
            BrokerPorts(self._port(f"kafka-{number}"), self._port(f"kafka-{number}-controller"))
            for number in range(1, count + 1)
        ]

    def _port(self, name: str) -> int:
        known = self._known()
        if name not in known or known[name] in self._reserved or not is_free(known[name]):
            candidates = find_free_ports(len(known) + 1 + SERVICE_PORTS)
            known[name] = next(
                port for port in candidates if port not in known.values() and port not in self._reserved
            )
            self._path.write_text(json.dumps(known, indent=2) + "\n")
        return known[name]

    def _known(self) -> dict[str, int]:
        try:
            return {str(name): int(port) for name, port in json.loads(self._path.read_text()).items()}
        except (FileNotFoundError, ValueError):
            return {}
