"""Phones: tables, money and notices of the dashboard fit, and filters are folded up."""

import pytest
from playwright.sync_api import expect

from services.dashboard.overview.queries import DAYS, MAX_PER_DAY
from shared.domain.accounts.roles import Role
from shared.domain.intents.states import IntentStatus
from tests.browser import DESKTOP, SMALL_PHONE
from tests.dashboard.browser.colleague import Colleague, Colleagues
from tests.dashboard.browser.every_page import EXPECTED, every_page
from tests.dashboard.browser.texts import LANGUAGES
from tests.dashboard.busy_shop import open_busy_shop
from tests.dashboard.payment_rows import make_intent
from tests.dashboard.world import DashboardWorld
from tests.page_layout import PHONE, money_problems, notice_problems, table_problems

pytestmark = pytest.mark.browser

LARGEST = 1_000_000_000
"""The largest amount of a payment, in thousandths."""
LARGEST_SUM = LARGEST * MAX_PER_DAY * DAYS
"""The largest amount that the overview can show."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_page_scrolls_sideways_and_every_button_of_a_row_is_on_the_screen(
    pages: DashboardWorld, colleagues: Colleagues, lang: str
) -> None:
    """Rows are cards with the heading of its column before each value. Tables that open are opened."""
    tab = colleagues.come(lang=lang, expected_statuses=EXPECTED)
    found = []
    for name in every_page(pages, tab):
        tab.page.evaluate("document.querySelectorAll('.numbers').forEach((each) => { each.open = true; })")
        for screen in (PHONE, DESKTOP):
            tab.page.set_viewport_size(screen)
            problems = table_problems(tab.page) + notice_problems(tab.page)
            found += [f"{name}, {screen['width']} px: {problem}" for problem in problems]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_largest_amounts_fit_in_one_line_with_their_currency(
    pages: DashboardWorld, colleagues: Colleagues, lang: str
) -> None:
    who = colleagues.come_in(pages, lang=lang)
    home = f"/applications/{pages.application.id}"
    payment = make_intent(pages, "order-1", IntentStatus.SUCCEEDED, amount=LARGEST)
    found = _money_problems(who, f"{home}/payments", f"{home}/payments/{payment}")
    # One row stands for the many payments of such a sum.
    pages.run("alter table payment_intents drop constraint payment_intents_amount_check")
    make_intent(pages, "order-2", IntentStatus.SUCCEEDED, amount=LARGEST_SUM - LARGEST)
    found += _money_problems(who, home)
    expect(who.main).to_contain_text("1,400,000,000,000.000")
    assert not found, "\n".join(found)


def _money_problems(who: Colleague, *paths: str) -> list[str]:
    found = []
    for path in paths:
        who.open(path)
        for screen in (SMALL_PHONE, PHONE, DESKTOP):
            who.page.set_viewport_size(screen)
            found += [f"{path}, {screen['width']} px: {problem}" for problem in money_problems(who.page)]
    return found


def test_icon_of_a_notice_in_a_live_part_is_beside_its_text(
    pages: DashboardWorld, colleagues: Colleagues
) -> None:
    """It was above the text: parts that are updated arranged every child as a grid."""
    shop = open_busy_shop(pages, pages.merchant.id)
    who = colleagues.come_in(pages)
    who.open(shop.path(f"deliveries/{shop.delivery}"))
    who.page.evaluate("document.querySelector('[data-live-toggle]')?.click()")
    who.button("Resend").click()
    who.reads("A resend was requested and is on its way.")
    for screen in (PHONE, DESKTOP):
        who.page.set_viewport_size(screen)
        assert who.page.locator(".live .notice").count() == 1
        assert notice_problems(who.page) == []


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no script"])
def test_filters_are_folded_up_on_a_phone_until_one_is_set(
    pages: DashboardWorld, colleagues: Colleagues, javascript: bool
) -> None:
    who = colleagues.come_in(
        pages, Role.VIEWER, viewport=PHONE, javascript=javascript, expected_statuses=EXPECTED
    )
    make_intent(pages, "order-1")
    home = f"/applications/{pages.application.id}"
    for path, field, wrong in (
        ("payments", "Created from", "payments?from=x"),
        ("deliveries", "From", "deliveries?from=x"),
    ):
        who.open(f"{home}/{path}")
        expect(who.field(field)).to_be_hidden()
        who.main.locator("summary").click()
        expect(who.field(field)).to_be_visible()
        for query in (f"{path}?from=2026-11-01", wrong):
            who.open(f"{home}/{query}")
            expect(who.field(field)).to_be_visible()
        who.page.set_viewport_size(DESKTOP)
        who.open(f"{home}/{path}")
        expect(who.field(field)).to_be_visible()
        expect(who.main.locator("summary")).to_be_hidden()
        who.page.set_viewport_size(PHONE)
