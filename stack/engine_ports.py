"""The ports of PostgreSQL and Kafka: free ones, remembered, and used again while they are still free."""

import json
from pathlib import Path

from stack.broker import BrokerPorts
from stack.free_ports import find_free_ports, is_free


class EnginePorts:
    """Ports by name, kept in a file of the stack's directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "ports.json"

    def postgres(self) -> int:
        return self._port("postgres")

    def brokers(self, count: int) -> list[BrokerPorts]:
        return [
            BrokerPorts(self._port(f"kafka-{number}"), self._port(f"kafka-{number}-controller"))
            for number in range(1, count + 1)
        ]

    def _port(self, name: str) -> int:
        known = self._known()
        if name not in known or not is_free(known[name]):
            known[name] = next(port for port in find_free_ports(len(known) + 1) if port not in known.values())
            self._path.write_text(json.dumps(known, indent=2) + "\n")
        return known[name]

    def _known(self) -> dict[str, int]:
        try:
            return {str(name): int(port) for name, port in json.loads(self._path.read_text()).items()}
        except (FileNotFoundError, ValueError):
            return {}
