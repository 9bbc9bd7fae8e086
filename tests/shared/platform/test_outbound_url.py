"""Allowed webhook URLs: §6.1 and the design's "only public addresses"."""

from ipaddress import ip_address

import pytest

from shared.platform.outbound_url import UrlFault, WebhookUrlError, check_webhook_url, is_public_address

ALLOWED = [
    "https://shop.example.ly",
    "https://shop.example.ly/hooks/mizan?app=1&x=%20",
    "HTTPS://Shop.Example.LY:8443/",
    "https://shop.example.ly./hook",
    "https://xn--mgb9awbf.example/",
    "https://under_score.example.ly/",
    "https://8.8.8.8/hook",
    "https://[2606:4700::1111]:443/hook",
    "https://[::ffff:8.8.8.8]/",
    "https://localhost.example.ly/",
    "https://10.example.ly/",
    "https://shop.example.ly/" + "a" * 2024,  # 2048 in all
]

# URL and a part of the error message.
REFUSED = [
    # Not an absolute https URL.
    ("", "begin with https://"),
    ("shop.example.ly/hook", "begin with https://"),
    ("//shop.example.ly/hook", "begin with https://"),
    ("http://shop.example.ly/hook", "begin with https://"),
    ("ftp://shop.example.ly/hook", "begin with https://"),
    ("https:shop.example.ly", "and a host"),
    ("https:///hook", "and a host"),
    ("https://:443/hook", "host or port"),
    # Parts that are not allowed.
    ("https://user:hush@shop.example.ly/", "user name or password"),
    ("https://@shop.example.ly/", "user name or password"),
    ("https://shop.example.ly/#top", "fragment"),
    ("https://shop.example.ly/#", "fragment"),
    # Characters.
    ("https://shop.example.ly/a b", "character ' '"),
    (" https://shop.example.ly/", "character ' '"),
    ("https://shop.example.ly/\n", r"character '\\n'"),
    ("https://shop.example.ly/\x00", r"character '\\x00'"),
    ("https://shop.example.ly/\udcff", r"character '\\udcff'"),
    ("https://shop.example.ly\\@127.0.0.1/", r"character '\\\\'"),
    ("https://متجر.example.ly/", "xn--"),
    ("https://127。0。0。1/", "character"),
    # Length and port.
    ("https://shop.example.ly/" + "a" * 2025, "2049 characters"),
    ("https://shop.example.ly:0/", "port"),
    ("https://shop.example.ly:65536/", "port"),
    ("https://shop.example.ly:4a3/", "port"),
    ("https://shop.example.ly:999999999999/", "port"),
    # Invalid hosts.
    ("https://shop..example.ly/", "host"),
    ("https://.example.ly/", "host"),
    ("https://example.ly../", "host"),
    (f"https://{'a' * 64}.example.ly/", "host"),
    (f"https://{'a.' * 130}ly/", "host"),
    ("https://%6cocalhost/", "host"),
    ("https://127.0.0.1%2f.example.ly/", "host"),
    ("https://[::1/", "square brackets"),
    ("https://[fe80::1%25eth0]/", "host"),
    ("https://evil[2606:4700::1111]/", "host"),
    ("https://[2606:4700::1111]evil/", "host"),
    # Names of local machines.
    ("https://localhost/", "public host name"),
    ("https://LOCALHOST./", "public host name"),
    ("https://Shop.LocalHost/", "public host name"),
    ("https://localhost.localdomain/", "public host name"),
    ("https://router.home.arpa/", "public host name"),
    ("https://postgres/", "public host name"),
    ("https://printer.local/", "public host name"),
    ("https://metadata.google.internal/", "public host name"),
    # Addresses that are not public.
    ("https://127.0.0.1/", "public address"),
    ("https://127.0.0.1./", "public address"),
    ("https://10.1.2.3:8443/", "public address"),
    ("https://169.254.169.254/latest/meta-data/", "public address"),
    ("https://[::1]/", "public address"),
    ("https://[::ffff:127.0.0.1]/", "public address"),
    ("https://[::ffff:7f00:1]/", "public address"),
    # Addresses in spellings that only some parsers accept.
    ("https://127.1/", "odd spelling"),
    ("https://0x7f.1/", "odd spelling"),
    ("https://0x7f000001/", "odd spelling"),
    ("https://2130706433/", "odd spelling"),
    ("https://0177.0.0.1/", "odd spelling"),
    ("https://127.0.0.0x1/", "odd spelling"),
    ("https://1.2.3.4.5/", "odd spelling"),
    ("https://256.1.1.1/", "odd spelling"),
    ("https://[1::2::3]/", "square brackets|odd spelling"),
]


@pytest.mark.parametrize("url", ALLOWED)
def test_public_https_url_is_accepted_unchanged(url: str) -> None:
    """The developer gets requests at exactly the URL they entered."""
    assert check_webhook_url(url, allow_private=False) == url


@pytest.mark.parametrize(("url", "told"), REFUSED)
def test_any_other_url_is_refused_with_a_reason(url: str, told: str) -> None:
    """The developer can act on the message, and it repeats no secret of the URL."""
    with pytest.raises(WebhookUrlError, match=told) as caught:
        check_webhook_url(url, allow_private=False)
    assert "hush" not in str(caught.value)


# In the order of REFUSED's blocks. Pages translate these codes.
FAULTS = {
    "https:///hook": UrlFault.NOT_ABSOLUTE,
    "https://@shop.example.ly/": UrlFault.USER_INFO,
    "https://shop.example.ly/#": UrlFault.FRAGMENT,
    "https://shop.example.ly/\x00": UrlFault.STRAY_CHARACTER,
    "https://shop.example.ly/" + "a" * 2025: UrlFault.TOO_LONG,
    "https://shop.example.ly:0/": UrlFault.IMPOSSIBLE_PORT,
    "https://shop.example.ly:4a3/": UrlFault.UNREADABLE_HOST,
    "https://shop..example.ly/": UrlFault.UNREADABLE_HOST,
    "https://[::1/": UrlFault.UNREADABLE_HOST,
    "https://printer.local/": UrlFault.LOCAL_NAME,
    "https://[::ffff:127.0.0.1]/": UrlFault.PRIVATE_ADDRESS,
    "https://127.1/": UrlFault.ODD_SPELLING,
}


@pytest.mark.parametrize("url", FAULTS)
def test_error_has_the_code_of_the_fault(url: str) -> None:
    with pytest.raises(WebhookUrlError) as caught:
        check_webhook_url(url, allow_private=False)
    assert caught.value.fault is FAULTS[url]


def test_every_fault_is_covered_by_these_tests() -> None:
    assert set(FAULTS.values()) == set(UrlFault)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8008/hook",
        "http://localhost:8008/hook",
        "https://[::1]/",
        "http://shop:8008/",
        "https://8.8.8.8/",
    ],
)
def test_development_may_use_private_addresses_and_http(url: str) -> None:
    """WEBHOOK_ALLOW_PRIVATE lifts the rule of https and that of public addresses."""
    assert check_webhook_url(url, allow_private=True) == url


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/",
        "http://u:p@localhost/",
        "http://localhost/#a",
        "http://localhost:0/",
        "http:///x",
        "",
    ],
)
def test_all_other_rules_apply_in_development_too(url: str) -> None:
    """Such URLs are as invalid on a laptop as in production."""
    with pytest.raises(WebhookUrlError):
        check_webhook_url(url, allow_private=True)


# First and last address of each range, where it matters.
NOT_PUBLIC = {
    "this network": "0.0.0.0 0.255.255.255 ::",
    "loopback": "127.0.0.1 127.255.255.255 ::1",
    "private": "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 fc00::1 fdff::1",
    "shared": "100.64.0.0 100.127.255.255",
    "link-local": "169.254.0.0 169.254.255.255 fe80::1 febf::1 fe80::1%eth0 fec0::1",
    "metadata": "169.254.169.254 fd00:ec2::254 100.100.100.200 192.0.0.192 168.63.129.16",
    "multicast": "224.0.0.1 239.255.255.255 ff02::1 ff0e::1",
    "reserved": "240.0.0.1 255.255.255.255 192.0.0.8 192.88.99.1 100::1 4000::1 5f00::1 2001:10::1",
    "documentation": "192.0.2.1 198.51.100.7 203.0.113.7 2001:db8::1 3fff::1",
    "benchmarks": "198.18.0.0 198.19.255.255 2001:2::1",
    "mapped and compatible": "::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:0:127.0.0.1 ::127.0.0.1",
    "6to4 and Teredo": "2002:7f00:1::1 2002:a00:1::1 2002:a9fe:a9fe::1 2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "NAT64": "64:ff9b::127.0.0.1 64:ff9b::169.254.169.254 64:ff9b:1::8.8.8.8",
}
PUBLIC = {
    "well known": "8.8.8.8 41.254.0.1 2606:4700::1111 2001:4860:4860::8888 2a00:1450::1",
    "neighbours of 0/8, 10/8, 127/8": "1.0.0.0 9.255.255.255 11.0.0.0 126.255.255.255 128.0.0.0",
    "neighbours of 100.64/10": "100.63.255.255 100.128.0.0",
    "neighbours of 169.254/16, 172.16/12": "169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0",
    "neighbours in 192/8": "192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0",
    "neighbours of 198.18/15, 224/4": "198.17.255.255 198.20.0.0 223.255.255.255",
    "neighbours of 2001::/23, 3fff::/20": "2001:200::1 3ffe::1",
    "mapped, 6to4, NAT64": "::ffff:8.8.8.8 2002:808:808::1 64:ff9b::8.8.8.8",
}


@pytest.mark.parametrize("kind", NOT_PUBLIC)
def test_local_private_and_reserved_addresses_are_not_public(kind: str) -> None:
    """Nor are IPv6 addresses that are translated to one of them."""
    assert not any(is_public_address(ip_address(text)) for text in NOT_PUBLIC[kind].split())


@pytest.mark.parametrize("kind", PUBLIC)
def test_every_other_address_is_public(kind: str) -> None:
    """The ranges end exactly where the registries define it."""
    assert all(is_public_address(ip_address(text)) for text in PUBLIC[kind].split())
