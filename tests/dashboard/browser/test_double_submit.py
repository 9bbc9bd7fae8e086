"""A double click takes effect once. Going back shows no secret again, and forms still work."""

from collections.abc import Callable
from contextlib import suppress
from typing import Literal

import pytest
from playwright.sync_api import Error, expect

from tests.dashboard.browser.colleague import Colleague, Colleagues
from tests.dashboard.delivery_rows import Deliveries
from tests.dashboard.world import DashboardWorld
from tests.waiting import eventually

pytestmark = pytest.mark.browser

with_and_without_script = pytest.mark.parametrize("javascript", [True, False], ids=["script", "no script"])

_MADE = """
select (select count(*) from applications), (select count(*) from credentials),
       (select count(*) from webhook_secrets), (select count(*) from webhook_deliveries where is_test),
       (select count(*) from resend_requests), (select count(*) from bulk_resends)"""


def _here(pages: DashboardWorld, section: str) -> str:
    return f"/applications/{pages.application.id}/{section}"


def _made(pages: DashboardWorld) -> dict[str, int]:
    names = ("applications", "credentials", "secrets", "tests", "resends", "bulk resends")
    return dict(zip(names, pages.rows(_MADE)[0], strict=True))


@with_and_without_script
def test_double_click_takes_effect_once(
    pages: DashboardWorld, colleagues: Colleagues, javascript: bool
) -> None:
    """With the script, the form is sent once. Without it, it arrives twice."""
    deliveries = Deliveries(pages.database, pages.application.id)
    failed = deliveries.make("failed", 500)
    who = colleagues.come_in(pages, javascript=javascript)
    before = _made(pages)

    with who.noting() as sent:
        who.open("/applications/new")
        who.field("Name").fill("Coffee to go")
        _double_click(pages, who, "Create application")
        for section, button in (
            ("credentials", "Issue an API key"),
            ("webhook", "Send test delivery"),
            (f"deliveries/{failed}", "Resend"),
            ("deliveries/resend-failed", "Resend all of them"),
        ):
            who.open(_here(pages, section))
            _double_click(pages, who, button)
        who.open(_here(pages, "webhook"))
        who.button("Roll secret").click()
        if not javascript:
            who.sees("Roll the webhook secret?")
        _double_click(pages, who, "Roll secret", "alertdialog" if javascript else "main")
    if javascript:
        assert len(sent) == 6
    made = {name: count - before[name] for name, count in _made(pages).items()}
    assert made == {
        "applications": 1,
        "credentials": 3,  # two of the new application, and the issued one
        "secrets": 2,
        "tests": 1,
        "resends": 1,
        "bulk resends": 1,
    }
    assert deliveries.in_line() == [str(failed)]
    noted = pages.audit()
    for action in ("application_created", "credential_issued", "delivery_resent"):
        assert noted.count(action) == 1, action


def _double_click(
    pages: DashboardWorld, who: Colleague, button: str, where: Literal["main", "alertdialog"] = "main"
) -> None:
    """Double-click the button, and wait until it has taken effect and the resulting page is shown."""
    before = _made(pages)
    # The request, so that `noting` sees it; the page, so that what is opened next does not meet it on its way.
    is_post = who.page.expect_request(lambda request: request.method == "POST")
    with is_post, who.page.expect_event("domcontentloaded"):
        found = who.page.get_by_role(where).get_by_role("button", name=who.says(button), exact=True)
        found.dblclick(no_wait_after=True)
    eventually(lambda: _made(pages) != before)
    who.page.wait_for_load_state("networkidle")


def test_going_back_shows_no_secret_again(pages: DashboardWorld, owner: Colleague) -> None:
    """Nor does going forward. Nothing more is created, and browsers may not cache the page."""
    owner.open(_here(pages, "credentials"))
    with owner.page.expect_response("**/credentials/access_token") as answer:
        owner.button("Issue an access token").click()
    assert answer.value.headers["cache-control"] == "no-store"
    owner.sees("A new access token")
    secret = owner.copy("Access token")
    owner.link("I have copied it: to the credentials").click()
    owner.sees("Credentials")
    made = _made(pages)
    for go in (owner.page.go_back, owner.page.go_back, owner.page.go_forward, owner.page.go_forward):
        _walk(go)
        assert secret not in owner.page.content()
    assert _made(pages) == made
    owner.open(_here(pages, "credentials"))
    owner.reads(secret[:8])
    assert secret not in owner.page.content()


def _walk(go: Callable[[], object]) -> None:
    """Go back or forward. Browsers do not show the response to a form again, and say so instead."""
    with suppress(Error):
        go()


def test_a_form_can_be_used_after_going_back(pages: DashboardWorld, owner: Colleague) -> None:
    owner.open(_here(pages, "settings"))
    owner.field("Name").fill("Coffee")
    owner.button("Save name").click()
    owner.reads("The name was saved.")
    owner.link("Webhook").click()
    owner.sees("Webhook")
    owner.page.go_back()
    owner.sees("Settings")
    owner.field("Name").fill("Tea")
    owner.button("Save name").click()
    owner.reads("The name was saved.")
    expect(owner.field("Name")).to_have_value("Tea")


def test_going_back_after_signing_out_shows_the_sign_in(pages: DashboardWorld, owner: Colleague) -> None:
    owner.open(_here(pages, "credentials"))
    owner.sees("Credentials")
    owner.sign_out()
    owner.page.go_back()
    owner.sees("Sign in")
