"""What owners, developers and viewers find on each page, by its name; and that others find nothing."""

from uuid import UUID

import pytest
from playwright.sync_api import expect

from shared.people.roles import Role
from tests.dashboard.browser.busy_shop import BusyShop, open_busy_shop
from tests.dashboard.browser.colleague import Colleague, Colleagues
from tests.dashboard.world import DashboardWorld

_OWNERS = frozenset({Role.OWNER})
_WRITERS = frozenset({Role.OWNER, Role.DEVELOPER})
_ALL = frozenset(Role)
# The names of buttons, and of links that look like buttons, by page.
_ACTIONS = {
    "/": {"Create an application": _OWNERS},
    "overview": {},
    "payments": {"Show": _ALL, "Export as CSV": _ALL},
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
_NAMES_IN_MAIN = """main => [...main.querySelectorAll("button, a.button")]
  .filter((element) => element.checkVisibility())
  .map((element) => element.getAttribute("aria-label") ?? element.textContent.trim())"""


def _path(shop: BusyShop, page: str) -> str:
    named = {"overview": "", "payment": f"payments/{shop.payment}", "delivery": f"deliveries/{shop.delivery}"}
    return page if page.startswith("/") else shop.path(named.get(page, page))


@pytest.mark.parametrize("role", Role)
def test_what_a_role_finds(pages: DashboardWorld, colleagues: Colleagues, role: Role) -> None:
    """And no secret, not even hidden: of keys and tokens only how they begin."""
    shop = open_busy_shop(pages, pages.merchant.id)
    pages.make_member(Role.VIEWER, email="colleague@example.ly")
    who = colleagues.come_in(pages, role, expected_statuses=frozenset({403}))
    for page, actions in _ACTIONS.items():
        who.open(_path(shop, page))
        content = who.page.content()
        assert not any(secret in content for secret in shop.secrets), f"a secret on {page}"
        names = who.main.evaluate(_NAMES_IN_MAIN)
        for name, roles in actions.items():
            assert any(each.startswith(name) for each in names) == (role in roles), (
                f"{page}: {name} in {names}"
            )
        if role is Role.VIEWER and page != "/account":
            expect(who.main.locator("form[method=post]")).to_have_count(0)
    for page, roles in _FOR_SOME.items():
        who.open(_path(shop, page))
        is_refused = who.main.get_by_text(who.says("Your role does not allow this")).count() == 1
        assert is_refused == (role not in roles), page


def test_another_merchant_finds_nothing(pages: DashboardWorld, colleagues: Colleagues) -> None:
    shop = open_busy_shop(pages, pages.merchant.id)
    pages.make_member(Role.VIEWER, email="colleague@example.ly")
    other = pages.make_merchant("Misrata Sweets")
    stranger = colleagues.come_in(pages, merchant=other, expected_statuses=frozenset({404}))
    for page in (*_ACTIONS, *_FOR_SOME):
        path = _path(shop, page)
        stranger.open(path)
        if path.startswith(shop.path()):
            stranger.sees("There is no such page")
        _sees_nothing_of(stranger, shop)
    for section, thing in (("payments", shop.payment), ("deliveries", shop.delivery)):
        _is_not_found_in(stranger, other.application.id, section, thing)
        stranger.open(f"/applications/{other.application.id}/{section}?id={thing}&search={thing}")
        _sees_nothing_of(stranger, shop)
        expect(stranger.main.get_by_role("row")).to_have_count(0)


def _is_not_found_in(stranger: Colleague, application_id: UUID, section: str, thing: UUID) -> None:
    """Nor by way of an application of one's own."""
    stranger.open(f"/applications/{application_id}/{section}/{thing}")
    stranger.sees("There is no such page")


def _sees_nothing_of(stranger: Colleague, shop: BusyShop) -> None:
    body = stranger.page.locator("body").inner_text()
    for theirs in ("Tripoli Coffee", "Books", "colleague@example.ly", "ORDER-77"):
        assert theirs not in body, f"{theirs} on {stranger.page.url}"
