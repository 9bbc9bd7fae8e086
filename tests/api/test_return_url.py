"""`return_url` (§4.1) is an absolute http or https URL, stored as sent: the customer is redirected there."""

import pytest

from tests.api.conftest import Merchant, data_of, errors_of

REFUSED = [
    ("", "nothing"),
    ("javascript:alert(1)", "a script"),
    ("JavaScript://shop.example/%0aalert(1)", "a script that looks like an address"),
    ("data:text/html,<h1>paid</h1>", "a page of its own"),
    ("ftp://shop.example/", "another scheme"),
    ("shop://orders/1", "an app's own scheme"),
    ("file:///etc/passwd", "a file"),
    ("shop.example/orders/1", "no scheme"),
    ("/orders/1", "relative"),
    ("orders/1", "relative"),
    ("?paid=1", "relative"),
    ("//shop.example/orders/1", "relative to our scheme"),
    ("https:", "no host"),
    ("https://", "no host"),
    ("https:///orders/1", "no host"),
    ("https://?x=1", "no host"),
    ("https://:443/", "a port without a host"),
    ("https://user@/", "a user without a host"),
    ("https:shop.example", "no slashes"),
    ("https:/shop.example", "one slash"),
    ("https://shop.example:99999/", "no such port"),
    ("https://shop.example:0/", "no such port"),
    ("https://shop.example:http/", "a port in letters"),
    ("https://shop.example:-1/", "a negative port"),
    ("https://[::1/", "a bracket that stays open"),
    ("https://shop example/", "a space in the host"),
    ("https://shop.example/orders 1", "a space in the path"),
    (" https://shop.example/", "a space before"),
    ("https://shop.example/ ", "a space behind"),
    ("https://shop.example/\n", "a line's end"),
    ("https://shop.example/\r\nSet-Cookie: a=b", "a header of its own"),
    ("https://shop.example/\torders", "a tab"),
    ("java\nscript:alert(1)", "what a browser would mend"),
    ("https:\\\\shop.example\\", "backslashes"),
    ("https://shop.example\\@evil.example/", "which of them is the host?"),
    ("https://shop.example/\x7f", "a control character"),
    (5, "a number"),
    (True, "a boolean"),
    (["https://shop.example/"], "a list"),
    ({"url": "https://shop.example/"}, "an object"),
]

ACCEPTED = [
    ("https://shop.example", "no path"),
    ("https://shop.example/orders/1?paid=maybe&x=%20#top", "query and fragment, the merchant's own"),
    ("http://shop.example/", "without TLS"),
    ("HTTPS://SHOP.EXAMPLE/Orders", "capitals"),
    ("https://shop.example:8443/", "a port"),
    ("http://127.0.0.1:8080/", "the merchant's own machine"),
    ("http://localhost/", "a name without a point"),
    ("https://[2001:db8::1]:8443/", "IPv6"),
    ("https://متجر.ليبيا/طلب/٤٢", "an Arabic host and path"),
    ("https://bücher.example/", "a host with an umlaut"),
    ("https://xn--bcher-kva.example/", "the same, in ASCII"),
    ("https://shop.example/🎁?حالة=مدفوع", "an emoji"),
    ("https://shop.example/" + "a" * 3000, "long"),
]


def test_return_url_that_is_not_absolute_http_or_https_is_422(
    merchant: Merchant, subtests: pytest.Subtests
) -> None:
    """DESIGN §3"""
    for url, why in REFUSED:
        with subtests.test(why, url=url):
            assert set(errors_of(merchant.create(return_url=url))) == {"return_url"}


def test_absolute_return_url_is_kept_as_sent(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """§4.1: nothing is appended or normalized."""
    for url, why in ACCEPTED:
        with subtests.test(why, url=url):
            assert data_of(merchant.create(merchant_reference=why, return_url=url), 201)["return_url"] == url
