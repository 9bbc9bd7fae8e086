"""The network that a client's address stands for, when clients are limited by their address."""

from ipaddress import IPv4Address, IPv6Network, ip_address


def client_network(address: str) -> str:
    """Return an IPv4 address as it is, and the /64 of an IPv6 address: its owner has 2^64 of them."""
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or IPv6Network((int(ip), 64), strict=False))
