"""What the script adds to pages that also work without it."""

import pytest
from playwright.sync_api import expect

from shared.domain.accounts.roles import Role
from tests.browser import DESKTOP, SMALL_PHONE
from tests.dashboard.browser.colleague import Colleague
from tests.dashboard.world import DashboardWorld

pytestmark = pytest.mark.browser

# Counted before they are sent: of several submits at once, browsers cancel all but one.
_SENT_BY_THREE_CLICKS = """button => {
  let sent = 0;
  window.addEventListener("submit", (event) => { sent += event.defaultPrevented ? 0 : 1; event.preventDefault(); });
  for (let click = 0; click < 3; click += 1) button.click();
  return sent;
}"""
_CLICK_AND_COME_BACK = """button => {
  button.click();
  const meanwhile = button.textContent;
  window.dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
  return [meanwhile, button.textContent];
}"""
_REFUSE_TO_COPY = "() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')); }"
_SCROLLS_SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def test_a_form_is_sent_once(owner: Colleague) -> None:
    owner.open("/team")
    owner.field("Email").fill("salem@example.ly")
    assert owner.button("Invite").evaluate(_SENT_BY_THREE_CLICKS) == 1


def test_form_can_be_sent_again_after_returning_to_its_page(owner: Colleague) -> None:
    owner.open("/team")
    owner.field("Email").fill("salem@example.ly")
    meanwhile, afterwards = owner.button("Invite").evaluate(_CLICK_AND_COME_BACK)
    assert (meanwhile, afterwards) == (owner.says("One moment…"), owner.says("Invite"))


def test_irreversible_actions_ask_for_confirmation(pages: DashboardWorld, owner: Colleague) -> None:
    other = pages.make_member(Role.VIEWER)
    owner.open("/team")
    remove = owner.button("Remove %(email)s", email=other)
    question = owner.page.get_by_role("alertdialog")
    for leave in ("Escape", "Enter"):  # Cancel has the focus
        remove.click()
        expect(question).to_contain_text(other)
        owner.page.keyboard.press(leave)
        expect(question).to_have_count(0)
        expect(remove).to_be_focused()
    remove.click()
    question.get_by_role("button", name=owner.says("Remove"), exact=True).click()
    expect(remove).to_have_count(0)


def test_selected_credentials_of_a_former_member_are_revoked_together(
    pages: DashboardWorld, owner: Colleague
) -> None:
    """The checkboxes stand outside their form."""
    former = pages.make_member(Role.DEVELOPER)
    pages.run("update members set removed_at = mizan_now() where email = %s", former)
    pages.run("update credentials set issued_by = (select id from members where email = %s)", former)
    owner.open("/team")
    boxes = owner.page.get_by_role("checkbox")
    expect(boxes).to_have_count(2)
    boxes.first.uncheck()
    owner.button("Revoke the selected credentials").click()
    question = owner.page.get_by_role("alertdialog")
    question.get_by_role("button", name=owner.says("Revoke the selected credentials")).click()
    expect(boxes).to_have_count(1)
    assert pages.rows("select revoked_at is null from credentials order by id") == [(True,), (False,)]


def test_text_is_selected_if_the_clipboard_is_not_available(pages: DashboardWorld, owner: Colleague) -> None:
    owner.open("/team")
    owner.field("Email").fill("salem@example.ly")
    owner.button("Invite").click()
    owner.page.evaluate(_REFUSE_TO_COPY)
    owner.button("Copy: %(what)s", what=owner.says("Invitation link")).click()
    expect(owner.page.locator("#said")).to_have_text(owner.says("Selected: copy it with your keyboard"))
    assert owner.page.evaluate("getSelection().toString()").startswith(f"{pages.url}/invitations/")


def test_closing_the_menu_returns_the_focus(owner: Colleague) -> None:
    owner.page.set_viewport_size(SMALL_PHONE)
    owner.button("Menu").press("Enter")
    expect(owner.link("Team")).to_be_visible()
    owner.page.keyboard.press("Escape")
    expect(owner.link("Team")).to_be_hidden()
    expect(owner.button("Menu")).to_be_focused()


def test_the_open_menu_closes_on_a_wide_window(owner: Colleague) -> None:
    owner.page.set_viewport_size(SMALL_PHONE)
    owner.button("Menu").click()
    owner.page.set_viewport_size(DESKTOP)
    expect(owner.page.locator("#menu:popover-open")).to_have_count(0)
    expect(owner.link("Team")).to_be_visible()


def test_table_wider_than_the_screen_scrolls_in_a_focusable_box(owner: Colleague) -> None:
    """Our tables fit. Words of a merchant may make one wider, even as cards."""
    owner.page.set_viewport_size(SMALL_PHONE)
    owner.open("/team")
    box = owner.page.get_by_role("group", name=owner.says("Members"), exact=True)
    expect(box).to_have_count(0)
    owner.page.locator(".table tbody").evaluate("body => { body.style.minInlineSize = '700px'; }")
    expect(box).to_have_attribute("tabindex", "0")
    assert not owner.page.evaluate(_SCROLLS_SIDEWAYS)
    owner.page.set_viewport_size(DESKTOP)
    expect(box).to_have_count(0)
