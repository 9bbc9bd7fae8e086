"""Ports: free ports for the engines, which a stack reuses, and the fixed ports of the services, which must be free."""

import json
import random
import socket
from collections.abc import Iterable
from pathlib import Path

import psutil

from stack.broker import BrokerPorts
from stack.errors import StackError
from stack.services import Service

# More than the number of services: these ports are free now, but the services will need them.
SERVICE_PORTS = 20

# Below the range for outgoing connections of every system. Any client could take a port of that range while its server
# restarts, and a client that retries on it could even connect to itself.
CANDIDATES = range(15_000, 32_000)
HOST = "127.0.0.1"


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port with connections in TIME_WAIT only is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def find_free_ports(count: int) -> list[int]:
    """Return `count` different ports that are free. Raises StackError if there are not enough."""
    found: list[int] = []
    for port in random.sample(CANDIDATES, k=1000):
        if is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise StackError(
        f"No free port was found between {CANDIDATES.start} and {CANDIDATES.stop}.",
        "Stop some of the programs that listen on them.",
    )


def check_service_ports(services: Iterable[Service], port_base: int) -> None:
    taken = [
        f"Port {port_base + service.port_offset} for {service.name} is taken by "
        f"{find_listener(port_base + service.port_offset)}."
        for service in services
        if not is_free(port_base + service.port_offset)
    ]
    if taken:
        raise StackError(
            "\n".join(taken),
            f"Stop that program, or use other ports: make run PORT_BASE={_other_port_base(port_base)} "
            "(and another STACK_DIR, if it is a second stack)",
        )


def find_listener(port: int) -> str:
    """Return the name and pid of the process that listens on `port`, if we may see it."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return "another program"
    for connection in connections:
        if connection.laddr and connection.laddr.port == port and connection.status == psutil.CONN_LISTEN:
            return _process_name(connection.pid)
    return "another program"


def _process_name(pid: int | None) -> str:
    if pid is None:
        return "another user's program"
    try:
        return f"{psutil.Process(pid).name()} (pid {pid})"
    except psutil.Error:
        return f"another program (pid {pid})"


def _other_port_base(port_base: int) -> int:
    return port_base + 1000 if port_base <= 64_000 else 9000


class EnginePorts:
    """The ports of the engines, stored in ports.json and reused while they are free. Never a port of a service."""

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
