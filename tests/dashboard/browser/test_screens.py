"""Small screens, long texts, light and dark mode. test_accessibility.py checks each page on each screen."""

from uuid import UUID

import pytest
from playwright.sync_api import expect

from shared.domain.accounts.roles import Role
from shared.domain.intents.states import IntentStatus
from tests.accessibility import SCREENS, unreachable_content_on
from tests.browser import SMALL_PHONE
from tests.dashboard.browser.colleague import Colleagues
from tests.dashboard.browser.every_page import EXPECTED
from tests.dashboard.busy_shop import BusyShop, open_busy_shop
from tests.dashboard.payment_rows import make_intent
from tests.dashboard.world import PASSWORD, DashboardWorld

pytestmark = pytest.mark.browser

_BRIGHTNESS = """() => {
  const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).map(Number);
  return (red + green + blue) / 3;
}"""


def test_long_names_and_texts_fit_every_screen(pages: DashboardWorld, colleagues: Colleagues) -> None:
    merchant = pages.make_merchant("M" * 190)
    shop = open_busy_shop(pages, merchant.id, "W" * 200)
    tab = colleagues.come(expected_statuses=EXPECTED)
    tab.sign_in(pages.make_member(Role.OWNER, merchant, f"{'e' * 60}@{'d' * 60}.example.ly"), PASSWORD)
    found = []
    for path in ("/", "/team", "/audit", "/account", *_with_long_texts(pages, shop)):
        tab.open(path)
        found += unreachable_content_on(tab.page, path, SCREENS)
    assert not found, "\n".join(found)


def _with_long_texts(pages: DashboardWorld, shop: BusyShop) -> list[str]:
    long_url = f"https://shop.example.ly/{'u' * 1900}"
    pages.run("update applications set webhook_url = %s where id = %s", long_url, shop.application_id)
    delivery = shop.deliveries.make("failed", 500, tries=1)
    pages.run("update webhook_deliveries set url = %s where id = %s", long_url, delivery)
    shop.deliveries.add_try(delivery, 1, 500, answer=b"x" * 16_384)
    payment = _long_payment(pages, shop.application_id)
    sections = ("", "payments", f"payments/{payment}", "deliveries", f"deliveries/{delivery}")
    return [shop.path(section) for section in (*sections, "webhook", "credentials", "settings")]


def _long_payment(pages: DashboardWorld, application_id: UUID) -> UUID:
    return make_intent(
        pages,
        "r" * 255,
        IntentStatus.SUCCEEDED,
        amount=1_000_000_000,
        application_id=application_id,
        description="قهوة " * 50,
        customer="c" * 255,
        metadata=f'{{"{"k" * 40}": "{"v" * 500}"}}',
    )


@pytest.mark.parametrize(("lang", "javascript"), [("ar", False), ("en", True)], ids=["no script", "script"])
def test_the_menu_on_a_phone(
    pages: DashboardWorld, colleagues: Colleagues, lang: str, javascript: bool
) -> None:
    """It covers nothing before it is opened, leads to every section, and can be closed."""
    who = colleagues.come_in(pages, Role.VIEWER, lang, viewport=SMALL_PHONE, javascript=javascript)
    who.open(f"/applications/{pages.application.id}")
    menu = who.page.get_by_role("navigation")
    payments = menu.get_by_role("link", name=who.says("Payments"), exact=True)
    expect(payments).to_be_hidden()
    who.button("Menu").click()
    for section in ("Overview", "Payments", "Deliveries", "Webhook", "Credentials", "Settings", "Team"):
        expect(menu.get_by_role("link", name=who.says(section), exact=True)).to_be_visible()
    who.button("Close the menu").click()
    expect(payments).to_be_hidden()
    who.button("Menu").click()
    payments.click()
    who.sees("Payments")
    who.button("Menu").click()
    who.sign_out()


def test_pages_have_a_light_and_a_dark_mode(colleagues: Colleagues) -> None:
    light, dark = (colleagues.come(dark=dark).page.evaluate(_BRIGHTNESS) for dark in (False, True))
    assert light > 200
    assert dark < 60
