"""What owners, developers and viewers can do on each page. Other merchants see nothing."""

import re

import pytest

from shared.domain.accounts.roles import Role
from tests.dashboard.busy_shop import BusyShop, open_busy_shop
from tests.dashboard.world import DashboardWorld
from tests.page_client import PageClient, main_html, page_text

_OWNERS = frozenset({Role.OWNER})
_WRITERS = frozenset({Role.OWNER, Role.DEVELOPER})
_ALL = frozenset(Role)
# The names of buttons, and of links that look like buttons, for each page.
_ACTIONS = {
    "/": {"Create an application": _OWNERS},
    "overview": {},
    "payments": {"Filter": _ALL, "Export as CSV": _ALL},
    "payment": {},
    "deliveries": {"Filter": _ALL, "Live": _ALL, "Resend failed deliveries": _WRITERS},
    "delivery": {"Live": _ALL, "Resend": _WRITERS},
    "webhook": {
        "Save URL": _WRITERS,
        "Remove URL": _WRITERS,
        "Roll secret": _WRITERS,
        "Send test delivery": _WRITERS,
    },
    "credentials": {
        "Issue an API key": _WRITERS,
        "Issue an access token": _WRITERS,
        "Revoke pk_": _WRITERS,
    },
    "settings": {"Save name": _OWNERS, "Save payment methods": _OWNERS, "Set the account for Sadad": _OWNERS},
    "/team": {"Invite": _OWNERS, "Remove colleague@example.ly": _OWNERS},
    "/audit": {},
    "/account": {"Change password": _ALL},
}
_FOR_SOME = {
    "/applications/new": _OWNERS,
    "settings/providers/card": _OWNERS,
    "deliveries/resend-failed": _WRITERS,
}
_BUTTON = re.compile(r'<(?:button\b|a class="button\b)([^>]*)>(.*?)</(?:button|a)>', re.DOTALL)
_LABEL = re.compile(r'aria-label="([^"]*)"')


@pytest.fixture
def shop(pages: DashboardWorld) -> BusyShop:
    pages.make_member(Role.VIEWER, email="colleague@example.ly")
    return open_busy_shop(pages, pages.merchant.id)


def _path(shop: BusyShop, page: str) -> str:
    named = {"overview": "", "payment": f"payments/{shop.payment}", "delivery": f"deliveries/{shop.delivery}"}
    return page if page.startswith("/") else shop.path(named.get(page, page))


def _names(main: str) -> list[str]:
    buttons = _BUTTON.findall(main)
    return [label[1] if (label := _LABEL.search(given)) else page_text(inside) for given, inside in buttons]


@pytest.mark.parametrize("role", Role)
def test_pages_show_only_the_actions_of_the_role(pages: DashboardWorld, shop: BusyShop, role: Role) -> None:
    """No secret is in the page, only the prefixes of keys and tokens."""
    person = pages.person(role)
    for page, actions in _ACTIONS.items():
        html = person.open(_path(shop, page)).text
        assert not any(secret in html for secret in shop.secrets), f"a secret on {page}"
        names = _names(main_html(html))
        for name, roles in actions.items():
            assert any(each.startswith(name) for each in names) == (role in roles), (
                f"{page}: {name} in {names}"
            )
        if role is Role.VIEWER and page != "/account":
            assert 'method="post"' not in main_html(html), page
    for page, roles in _FOR_SOME.items():
        is_refused = person.open(_path(shop, page)).status_code == 403
        assert is_refused == (person.title == "Your role does not allow this") == (role not in roles), page


def test_another_merchant_sees_nothing(pages: DashboardWorld, shop: BusyShop) -> None:
    other = pages.make_merchant("Misrata Sweets")
    stranger = pages.person(Role.OWNER, other)
    for page in (*_ACTIONS, *_FOR_SOME):
        path = _path(shop, page)
        assert stranger.open(path).status_code == (404 if path.startswith(shop.path()) else 200)
        _sees_nothing_of_the_shop(stranger)
    own = f"/applications/{other.application.id}"
    for section, thing in (("payments", shop.payment), ("deliveries", shop.delivery)):
        assert stranger.open(f"{own}/{section}/{thing}").status_code == 404, (
            "nor by way of an application of one's own"
        )
        stranger.open(f"{own}/{section}?id={thing}&search={thing}")
        _sees_nothing_of_the_shop(stranger)
        assert "<tr" not in stranger.response.text


def _sees_nothing_of_the_shop(stranger: PageClient) -> None:
    for theirs in ("Tripoli Coffee", "Books", "colleague@example.ly", "ORDER-77"):
        assert theirs not in stranger.response.text, f"{theirs} on {stranger.response.url}"
