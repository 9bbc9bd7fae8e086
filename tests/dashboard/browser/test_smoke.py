"""Every page opens in a real browser with its heading, without errors and without failed requests."""

from urllib.parse import urlsplit
from uuid import UUID

from playwright.sync_api import expect

from services.dashboard.app import make_app
from services.dashboard.people.invitations import invite
from shared.console.guard import requirement_of
from shared.domain.accounts.roles import Role
from tests.dashboard.browser.colleague import Colleague, Colleagues
from tests.dashboard.busy_shop import BusyShop, open_busy_shop
from tests.dashboard.world import PASSWORD, DashboardWorld

_NO_PAGES = {"payments.export"}


def test_every_page_opens(pages: DashboardWorld, colleagues: Colleagues) -> None:
    """In Arabic, the default language. The `visitors` fixture fails the test if a page has an error."""
    shop = open_busy_shop(pages, pages.merchant.id)
    who = colleagues.come(_invitation(pages, pages.merchant.id), lang="ar")
    who.sees("Join the team")
    opened = ["/sign-in", "/invitations/token"]
    who.open("/sign-in")
    who.sees("Sign in")
    who.sign_in(pages.make_member(Role.OWNER), PASSWORD)
    for path, heading in _pages_of(pages, shop, who).items():
        who.open(path)
        expect(who.page.locator("h1")).to_have_text(heading)
        opened.append(path)
    who.open(shop.path("deliveries"))
    expect(who.button("Live")).to_be_visible()  # shown by the page's script
    who.open(shop.path("deliveries/resend-failed"))
    who.button("Resend all of them").click()
    who.sees("Resending failed deliveries")
    opened.append(urlsplit(who.page.url).path)
    assert _endpoints(pages, opened) == _endpoints(pages), "a page that no smoke test opens"


def _invitation(pages: DashboardWorld, merchant_id: UUID) -> str:
    with pages.database.transaction() as connection:
        _, token = invite(connection, merchant_id, "new@example.ly", Role.VIEWER)
    return f"/invitations/{token}"


def _pages_of(pages: DashboardWorld, shop: BusyShop, who: Colleague) -> dict[str, str]:
    ((reference,),) = pages.rows("select reference from payment_intents where uuid = %s", shop.payment)
    card = who.says("Bank card")
    sections = {
        "": "Overview",
        "payments": "Payments",
        "deliveries": "Deliveries",
        f"deliveries/{shop.delivery}": "Payment succeeded",
        "deliveries/resend-failed": "Resend failed deliveries",
        "webhook": "Webhook",
        "credentials": "Credentials",
        "settings": "Settings",
    }
    others = {
        "/": "Applications",
        "/applications/new": "Create an application",
        "/team": "Team",
        "/audit": "Audit log",
        "/account": "Your account",
    }
    return {
        **{shop.path(section): who.says(heading) for section, heading in sections.items()},
        shop.path(f"payments/{shop.payment}"): who.says("Payment %(reference)s", reference=reference.upper()),
        shop.path("settings/providers/card"): who.says("Provider account: %(method)s", method=card),
        **{path: who.says(heading) for path, heading in others.items()},
    }


def _endpoints(pages: DashboardWorld, opened: list[str] | None = None) -> set[str]:
    """Return the endpoints of these paths, or of all pages."""
    app = make_app(pages.settings, pages.service_database)
    if opened is not None:
        return {app.url_map.bind("").match(path)[0] for path in opened}
    rules = [rule for rule in app.url_map.iter_rules() if "GET" in (rule.methods or ())]
    names = {rule.endpoint for rule in rules if requirement_of(app.view_functions[rule.endpoint]) is not None}
    return names - _NO_PAGES
