"""Everything can be done with the keyboard alone."""

import pytest
from playwright.sync_api import expect

from shared.domain.accounts.roles import Role
from tests.browser_user import press, tab_to, type_into
from tests.dashboard.browser.colleague import Colleague, Colleagues
from tests.dashboard.browser.texts import LANGUAGES
from tests.dashboard.busy_shop import open_busy_shop
from tests.dashboard.world import PASSWORD, DashboardWorld

pytestmark = pytest.mark.browser

_SKIP = "Skip to the content"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_sign_in_filter_and_resend_with_the_keyboard(
    pages: DashboardWorld, colleagues: Colleagues, lang: str
) -> None:
    shop = open_busy_shop(pages, pages.merchant.id)
    who = colleagues.come(lang=lang)
    expect(who.field("Email")).to_be_focused()
    who.page.keyboard.type(pages.make_member(Role.DEVELOPER))
    type_into(who, "Password", PASSWORD)
    who.page.keyboard.press("Enter")
    who.sees("Applications")

    press(who, who.main.get_by_role("link", name="Books"))
    who.sees("Overview")
    press(who, who.link("Deliveries"))
    who.sees("Deliveries")
    tab_to(who, who.field("Status"))
    who.page.keyboard.press("ArrowDown")
    who.page.keyboard.press("ArrowDown")
    expect(who.field("Status")).to_have_value("succeeded")
    type_into(who, "Payment or delivery id", str(shop.delivery))
    press(who, who.button("Filter"))
    expect(who.main.get_by_role("row")).to_have_count(2)
    press(who, who.main.get_by_role("row").nth(1).get_by_role("link").first)
    who.sees("Payment succeeded")
    press(who, who.page.locator("#try-2 summary"))
    expect(who.page.locator("#try-2")).to_have_attribute("open", "")
    who.page.reload()
    press(who, who.button("Resend"), "Space")
    who.reads("The delivery is being resent. The new try appears here in a moment.")
    assert shop.deliveries.in_line() == [str(shop.delivery)]


def test_skip_link_is_the_first_stop_and_leads_to_the_content(owner: Colleague) -> None:
    owner.open("/team")
    skip = owner.link(_SKIP)
    before = owner.page.screenshot()
    owner.page.keyboard.press("Tab")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    assert owner.page.screenshot() != before, "out of the way until it is needed"
    owner.page.keyboard.press("Enter")
    expect(owner.main).to_be_focused()
    owner.page.keyboard.press("Tab")
    assert owner.page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_confirmation_dialog_can_be_used_with_the_keyboard(pages: DashboardWorld, owner: Colleague) -> None:
    """Tab stays in the dialog. Escape changes nothing and returns the focus. Enter on `Revoke` revokes."""
    owner.open(f"/applications/{pages.application.id}/credentials")
    revoke = owner.main.get_by_role("button", name="Revoke").first
    question = owner.page.get_by_role("alertdialog")
    press(owner, revoke)
    expect(question).to_be_visible()
    expect(question.get_by_role("button", name=owner.says("Cancel"))).to_be_focused()
    for _ in range(4):
        owner.page.keyboard.press("Tab")
        assert not owner.page.evaluate("document.querySelector('main').contains(document.activeElement)")
    owner.page.keyboard.press("Escape")
    expect(question).to_have_count(0)
    expect(revoke).to_be_focused()
    assert _revoked(pages) == 0
    owner.page.keyboard.press("Enter")
    yes = question.get_by_role("button", name=owner.says("Revoke"), exact=True)
    press(owner, yes)
    expect(owner.main.get_by_role("status")).to_contain_text("Revoked")
    assert _revoked(pages) == 1


def _revoked(pages: DashboardWorld) -> int:
    count: int = pages.rows("select count(*) from credentials where revoked_at is not null")[0][0]
    return count


def test_secret_can_be_copied_with_the_keyboard(pages: DashboardWorld, owner: Colleague) -> None:
    owner.open(f"/applications/{pages.application.id}/webhook")
    press(owner, owner.button("Roll secret"))
    press(owner, owner.page.get_by_role("alertdialog").get_by_role("button", name=owner.says("Roll secret")))
    owner.sees("The new webhook secret")
    press(owner, owner.button("Copy: %(what)s", what=owner.says("Webhook secret")))
    expect(owner.page.locator("#said")).to_have_text(owner.says("Copied"))
    assert owner.page.evaluate("navigator.clipboard.readText()").startswith("whsec_")
