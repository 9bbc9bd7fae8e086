"""Checks webhook URLs (§6.1): they must be public https. Pure; the addresses behind a name are checked at every try."""

import re
from enum import StrEnum, auto
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import NewType
from urllib.parse import urlsplit

WebhookUrl = NewType("WebhookUrl", str)
"""A URL that passed `check_webhook_url`."""

MAX_LENGTH = 2048
# RFC 3986 allows no others. Parsers disagree about a backslash, a space or a wide dot.
_NOT_IN_A_URL = re.compile(r"[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]")
_HOST_AND_PORT = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{0,5}))?")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_LOCAL_NAME = re.compile(r"[^.]*|(?:.*\.)?(?:localhost|localdomain|local|internal|home\.arpa)", re.IGNORECASE)

# IANA's special-purpose registries without the few reachable entries. Not ipaddress.is_global: it is true for
# multicast, and its result for translated addresses changed between patch releases of Python 3.11.
_NOT_PUBLIC_IPV4 = [
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host, this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by a carrier's customers; metadata of Alibaba Cloud
        "127.0.0.0/8",
        "168.63.129.16/32",  # every Azure machine's own host
        "169.254.0.0/16",  # link-local; metadata of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments; metadata of Oracle Cloud
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays, withdrawn
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
]
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NOT_PUBLIC_IPV6 = [
    IPv6Network("2001::/23"),  # protocol assignments, with Teredo
    IPv6Network("2001:db8::/32"),  # documentation
    IPv6Network("3fff::/20"),  # documentation
]
_NAT64 = IPv6Network("64:ff9b::/96")


class UrlFault(StrEnum):
    """What can be wrong with a URL, for callers that word or translate it themselves."""

    TOO_LONG = auto()
    STRAY_CHARACTER = auto()
    NOT_ABSOLUTE = auto()
    USER_INFO = auto()
    FRAGMENT = auto()
    UNREADABLE_HOST = auto()
    IMPOSSIBLE_PORT = auto()
    LOCAL_NAME = auto()
    PRIVATE_ADDRESS = auto()
    ODD_SPELLING = auto()


class WebhookUrlError(Exception):
    """The URL cannot be used for webhooks. The text says what to change, and does not repeat the URL."""

    def __init__(self, fault: UrlFault, text: str) -> None:
        super().__init__(f"the webhook URL {text}")
        self.fault = fault
        self.what = text


def check_webhook_url(url: str, *, allow_private: bool) -> WebhookUrl:
    """Return the URL unchanged; raises WebhookUrlError if a webhook may not go there.

    `allow_private`, for development, also allows plain http and private addresses.
    """
    if len(url) > MAX_LENGTH:
        raise WebhookUrlError(UrlFault.TOO_LONG, f"has {len(url)} characters; {MAX_LENGTH} is the most")
    stray = _NOT_IN_A_URL.search(url)
    if stray:
        raise WebhookUrlError(
            UrlFault.STRAY_CHARACTER,
            f"has the character {stray[0]!a}: percent-encode it, or in a host name use the xn-- form",
        )
    host = _host_of(url, ("https", "http") if allow_private else ("https",))
    if not allow_private:
        _check_host_is_public(host)
    return WebhookUrl(url)


def is_public_address(ip: IPv4Address | IPv6Address) -> bool:
    """Whether the address is on the public internet: not local, private or reserved."""
    if isinstance(ip, IPv4Address):
        return not any(ip in network for network in _NOT_PUBLIC_IPV4)
    carried = _carried_ipv4(ip)
    if carried is not None:
        return is_public_address(carried)
    return ip in _GLOBAL_UNICAST and not any(ip in network for network in _NOT_PUBLIC_IPV6)


def _carried_ipv4(ip: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address inside a mapped, 6to4 or NAT64 address."""
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFF_FFFF)
    return ip.ipv4_mapped or ip.sixtofour


def _host_of(url: str, schemes: tuple[str, ...]) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise WebhookUrlError(
            UrlFault.UNREADABLE_HOST, "has a host that cannot be read; check its square brackets"
        ) from None
    if parts.scheme not in schemes or not parts.netloc:
        raise WebhookUrlError(
            UrlFault.NOT_ABSOLUTE, f"must begin with {' or '.join(f'{s}://' for s in schemes)} and a host"
        )
    if "@" in parts.netloc:
        raise WebhookUrlError(
            UrlFault.USER_INFO,
            "must not carry a user name or password; put a token into the path if you need one",
        )
    if "#" in url:
        raise WebhookUrlError(UrlFault.FRAGMENT, "must not have a fragment: nothing from # on is ever sent")
    found = _HOST_AND_PORT.fullmatch(parts.netloc)
    if not found or not _has_sane_labels(found["host"]):
        raise WebhookUrlError(UrlFault.UNREADABLE_HOST, "has a host or port that cannot be read")
    if found["port"] and not 1 <= int(found["port"]) <= 65535:
        raise WebhookUrlError(UrlFault.IMPOSSIBLE_PORT, "has an impossible port; ports go from 1 to 65535")
    return found["host"]


def _has_sane_labels(host: str) -> bool:
    labels = host.removesuffix(".").split(".")
    return host.startswith("[") or (len(host) <= 253 and all(0 < len(label) <= 63 for label in labels))


def _check_host_is_public(host: str) -> None:
    address = _address_in(host.removesuffix("."))
    if address is None:
        if _LOCAL_NAME.fullmatch(host.removesuffix(".")):
            raise WebhookUrlError(
                UrlFault.LOCAL_NAME, "must have a public host name; this one means a local machine"
            )
    elif not is_public_address(address):
        raise WebhookUrlError(
            UrlFault.PRIVATE_ADDRESS, "must have a public address; this one is private, local or reserved"
        )


def _address_in(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address, or None for a name. A host whose last label is a number is an address: no domain ends so."""
    try:
        if host.startswith("["):
            return IPv6Address(host[1:-1])
        if _NUMBER.fullmatch(host.rpartition(".")[2]):
            return IPv4Address(host)
    except ValueError:
        raise WebhookUrlError(
            UrlFault.ODD_SPELLING, "has an address in an odd spelling; write it as 192.0.2.1 or [2001:db8::1]"
        ) from None
    return None
