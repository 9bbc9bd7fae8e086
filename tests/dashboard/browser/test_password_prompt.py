"""The prompt for the password in a browser: with and without script, in both languages, with the keyboard alone."""

import pytest
from playwright.sync_api import expect

from tests.browser import SMALL_PHONE
from tests.browser_user import press, tab_to
from tests.dashboard.browser.colleague import Colleagues
from tests.dashboard.browser.every_page import EXPECTED
from tests.dashboard.sensitive_changes import SECRETS, provider_credentials
from tests.dashboard.world import PASSWORD, DashboardWorld

pytestmark = pytest.mark.browser

_FIELDS = {
    "api_key": "Plutu API key",
    "access_token": "Plutu access token",
    "secret_key": "Plutu secret key",
}


@pytest.mark.parametrize(("lang", "javascript"), [("ar", False), ("en", True)], ids=["no script", "script"])
def test_change_goes_on_after_the_password_with_what_was_typed(
    pages: DashboardWorld, colleagues: Colleagues, lang: str, javascript: bool
) -> None:
    """On a phone. The password has the focus, and Enter sends it."""
    who = colleagues.come_in(
        pages, lang=lang, javascript=javascript, viewport=SMALL_PHONE, expected_statuses=EXPECTED
    )
    pages.run("update sessions set password_at = null")
    who.open(f"/applications/{pages.application.id}/settings/providers/card")
    for name, label in _FIELDS.items():
        tab_to(who, who.field(label))
        who.page.keyboard.insert_text(SECRETS[name])
    press(who, who.button("Use this Plutu account"))
    for typed in ("wrong", PASSWORD):
        who.sees("Enter your password to continue")
        expect(who.field("Password")).to_be_focused()
        expect(who.field("Password")).to_have_attribute("autocomplete", "current-password")
        assert pages.rows("select from provider_accounts") == []
        who.page.keyboard.type(typed)
        who.page.keyboard.press("Enter")
    who.sees("Settings")
    assert provider_credentials(pages) == SECRETS
