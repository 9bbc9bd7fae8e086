"""A signed-in member follows a link from another site and stays signed in; a form of another site changes nothing."""

import pytest

from tests.dashboard.browser.colleague import Colleagues
from tests.dashboard.world import DashboardWorld

pytestmark = pytest.mark.browser

ELSEWHERE = "http://mail.example.ly/"
_PAGE = """<!doctype html><html lang="en"><title>Mail</title>
<a href="{url}/team">Link</a>
<form method="post" action="{url}/team/invite">
<input name="email" value="stranger@example.ly"><input name="role" value="owner"><button>Form</button></form>"""


def test_link_from_a_mail_opens_the_page_and_a_foreign_form_changes_nothing(
    pages: DashboardWorld, colleagues: Colleagues
) -> None:
    """The cookie is SameSite=Lax. With Strict the link would lead to the sign-in form, which replaces the cookie."""
    owner = colleagues.come_in(pages, expected_statuses=frozenset({400, 401}))
    owner.visitor.context.route(
        f"{ELSEWHERE}**",
        lambda route: route.fulfill(body=_PAGE.format(url=pages.url), content_type="text/html"),
    )
    page = owner.page
    page.goto(ELSEWHERE)
    page.get_by_role("link", name="Link").click()
    owner.sees("Team")
    page.goto(ELSEWHERE)
    with page.expect_navigation(url=f"{pages.url}/**") as answered:
        page.get_by_role("button", name="Form").click()
    assert answered.value.status == 400
    assert pages.rows("select from members where email = 'stranger@example.ly'") == []
    owner.open("/team")
    owner.sees("Team")
