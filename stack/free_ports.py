"""Ports: free ones for what may live anywhere, and whether a wanted one can be had."""

import random
import socket

from stack.errors import StackError

# Below every system's range for outgoing connections. A port from that range may be taken by any client while
# its server is restarted, and a client that retries on it can even connect to itself.
CANDIDATES = range(15_000, 32_000)
HOST = "127.0.0.1"


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port whose last connections are merely in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def find_free_ports(count: int) -> list[int]:
    """`count` different ports nobody listens on."""
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
