"""The fixed ports of the services: checked before anything starts, with the name of whoever sits on one."""

from collections.abc import Iterable

import psutil

from stack.errors import StackError
from stack.free_ports import is_free
from stack.services import Service


def check_service_ports(services: Iterable[Service], port_base: int) -> None:
    taken = [
        f"Port {port_base + service.port_offset} for {service.name} is taken by "
        f"{holder_of(port_base + service.port_offset)}."
        for service in services
        if not is_free(port_base + service.port_offset)
    ]
    if taken:
        raise StackError(
            "\n".join(taken),
            f"Stop that program, or use other ports: make run PORT_BASE={_another(port_base)} "
            "(and another STACK_DIR, if it is a second stack)",
        )


def holder_of(port: int) -> str:
    """Name and pid of the process that listens on `port`, as far as we may see it."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return "another program"
    for connection in connections:
        if connection.laddr and connection.laddr.port == port and connection.status == psutil.CONN_LISTEN:
            return _name(connection.pid)
    return "another program"


def _name(pid: int | None) -> str:
    if pid is None:
        return "another user's program"
    try:
        return f"{psutil.Process(pid).name()} (pid {pid})"
    except psutil.Error:
        return f"another program (pid {pid})"


def _another(port_base: int) -> int:
    return port_base + 1000 if port_base <= 64_000 else 9000
