"""Takes an address to listen on, or says clearly why not."""

import socket


class PortNotUsableError(Exception):
    """The address cannot be listened on, most often because something else does."""


def listen(host: str, port: int) -> socket.socket:
    """Port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise PortNotUsableError(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
