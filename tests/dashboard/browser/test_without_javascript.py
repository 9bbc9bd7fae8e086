"""Everything works without JavaScript, but without confirmation dialogs; a page asks before a secret is rolled."""

import re

import pytest
from playwright.sync_api import expect

from shared.domain.accounts.roles import Role
from shared.platform.tokens import token_prefix
from tests.dashboard.browser.colleague import Colleague, Colleagues
from tests.dashboard.busy_shop import open_busy_shop
from tests.dashboard.world import PASSWORD, DashboardWorld

pytestmark = pytest.mark.browser

_SECRET = re.compile(r"(pk|at|whsec)_\w{20,}")


@pytest.fixture
def owner(pages: DashboardWorld, colleagues: Colleagues) -> Colleague:
    return colleagues.come_in(pages, javascript=False)


def _shown_secrets(who: Colleague) -> list[str]:
    return [text for text in who.main.locator("code").all_inner_texts() if _SECRET.fullmatch(text)]


def test_application_is_created_and_configured(pages: DashboardWorld, colleagues: Colleagues) -> None:
    owner = colleagues.come_in(pages, lang="ar", javascript=False)
    owner.link("Create an application").click()
    owner.field("Name").fill("Coffee to go")
    owner.button("Create application").click()
    owner.sees("The application was created")
    made = _shown_secrets(owner)
    assert len(made) == 3
    owner.link("I have copied them: to the application").click()

    owner.link("Credentials").first.click()
    owner.button("Issue an API key").click()
    owner.sees("A new API key")
    (issued,) = _shown_secrets(owner)
    assert issued not in made
    owner.link("I have copied it: to the credentials").click()
    owner.button("Revoke %(prefix)s", prefix=token_prefix(issued)).click()
    owner.reads("Revoked")

    owner.link("Webhook").click()
    owner.field("URL").fill("https://shop.example.ly/new")
    owner.button("Save URL").click()
    owner.reads("The webhook URL was saved. New deliveries go there.")
    owner.button("Roll secret").click()
    owner.sees("Roll the webhook secret?")
    owner.button("Roll secret").click()
    owner.sees("The new webhook secret")
    assert set(_shown_secrets(owner)).isdisjoint(made)
    owner.link("I have copied it: to the webhook settings").click()
    owner.button("Send test delivery").click()
    owner.sees("Payment succeeded")
    owner.link("Webhook").click()
    owner.button("Remove URL").click()
    owner.reads("There is no URL, so no webhooks are sent.")
    owner.sign_out()


def test_deliveries_are_filtered_paged_and_resent(pages: DashboardWorld, owner: Colleague) -> None:
    shop = open_busy_shop(pages, pages.merchant.id)
    shop.deliveries.make_many(60, "failed", 500)
    owner.open(shop.path("deliveries"))
    expect(owner.button("Live")).to_be_hidden()
    owner.field("Status").select_option("failed")
    owner.button("Filter").click()
    seen = _pages_of(owner)
    assert len(seen) == len(set(seen)) == 61
    owner.link("Newest").click()
    owner.field("Payment or delivery id").fill(str(shop.delivery))
    owner.field("Status").select_option("")
    owner.button("Filter").click()
    owner.main.get_by_role("row").nth(1).get_by_role("link").first.click()
    owner.button("Resend").click()
    owner.reads("The delivery is being resent. The new try appears here in a moment.")
    assert shop.deliveries.in_line() == [str(shop.delivery)]

    owner.open(shop.path("deliveries/resend-failed"))
    owner.button("Count").click()
    owner.button("Resend all of them").click()
    owner.sees("Resending failed deliveries")
    owner.link("Refresh").click()
    owner.button("Stop").click()
    owner.reads("Stopped")


def _pages_of(owner: Colleague) -> list[str]:
    """Return the addresses of all deliveries, from the first page to the last."""
    seen = _on_this_page(owner)
    while owner.link("Older").count():
        owner.link("Older").click()
        seen += _on_this_page(owner)
    return seen


def _on_this_page(owner: Colleague) -> list[str]:
    links = owner.main.locator("tbody th a")
    return [link.get_attribute("href") or "" for link in links.all()]


def test_member_is_invited_joins_and_is_removed(
    pages: DashboardWorld, colleagues: Colleagues, owner: Colleague
) -> None:
    owner.link("Team").click()
    owner.field("Email").fill("salem@example.ly")
    owner.button("Invite").click()
    link = owner.main.locator(".copyable code").inner_text()
    invited = colleagues.come(link.removeprefix(pages.url), javascript=False)
    invited.field("Password").fill("seven small boats at sea")
    invited.button("Join").click()
    invited.sees("Applications")

    owner.link("Team").click()
    owner.field("Role of salem@example.ly").select_option("viewer")
    owner.button("Change the role of %(email)s", email="salem@example.ly").click()
    owner.reads("The role was changed.")
    owner.button("Remove %(email)s", email="salem@example.ly").click()
    owner.reads("%(email)s was removed, and all their sessions have ended.", email="salem@example.ly")
    invited.link("Team").click()
    invited.sees("Sign in")


def test_a_password_is_changed_and_a_session_ended(pages: DashboardWorld, colleagues: Colleagues) -> None:
    email = pages.make_member(Role.VIEWER)
    here, there = (colleagues.come(javascript=False) for _ in range(2))
    for who in (here, there):
        who.sign_in(email, PASSWORD)
    here.open("/account")
    here.button("End all other sessions").click()
    here.reads("The session was ended.")
    there.link("Team").click()
    there.sees("Sign in")
    here.field("Current password").fill(PASSWORD)
    here.field("New password").fill("seven small boats at sea")
    here.button("Change password").click()
    here.reads("Your password was changed. All your other sessions have ended.")
    here.sign_out()
    here.sign_in(email, "seven small boats at sea")
