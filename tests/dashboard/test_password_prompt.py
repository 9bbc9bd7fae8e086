"""A sensitive change asks for the password, unless it was entered in this session in the last 10 minutes."""

from datetime import timedelta

import pytest
import requests

from services.dashboard.app import make_app
from shared.console.guard import is_sensitive
from shared.domain.accounts import passwords
from shared.domain.accounts.passwords import is_password
from shared.domain.accounts.roles import Role
from shared.domain.accounts.throttles import ACCOUNT
from shared.domain.accounts.users import find_user, rehash_password
from tests.clock import Clock
from tests.dashboard.sensitive_changes import (
    LONG_SECRET,
    PROMPT,
    SECRETS,
    enter_password,
    make_change,
    provider_credentials,
)
from tests.dashboard.world import PASSWORD, DashboardWorld
from tests.databases import read_all_rows
from tests.page_client import PageClient

WRONG = "not the password at all"
OVER = timedelta(minutes=10)
SENSITIVE = (
    "applications.create",
    "applications.issue",
    "applications.remove_url",
    "applications.revoke",
    "applications.roll_secret",
    "applications.set_provider",
    "applications.set_url",
    "people.change_role",
    "people.invite",
    "people.invite_again",
    "people.remove",
    "people.revoke_credentials",
)
ASKS_ITSELF = {"people.change_password"}
"""Its form has a field for the current password."""
NOT_SENSITIVE = {
    "applications.choose_methods",
    "applications.rename",
    "applications.send_test",
    "applications.set_public_names",
    "deliveries.resend",
    "deliveries.resend_failed",
    "deliveries.retry_waiting",
    "deliveries.stop",
    "people.changes_seen",
    "people.check",
    "people.choose",
    "people.end_session",
    "people.join",
    "people.sign_out",
}


def test_each_route_that_changes_something_is_sensitive_or_listed_as_not(world: DashboardWorld) -> None:
    app = make_app(world.settings, world.service_database)
    changing = {rule.endpoint for rule in app.url_map.iter_rules() if "POST" in (rule.methods or ())}
    sensitive = {name for name in changing if is_sensitive(app.view_functions[name])}
    assert sensitive == set(SENSITIVE)
    assert changing - sensitive == NOT_SENSITIVE | ASKS_ITSELF


@pytest.mark.parametrize("endpoint", SENSITIVE)
def test_sensitive_change_waits_for_the_password(pages: DashboardWorld, clock: Clock, endpoint: str) -> None:
    """Nothing changes before it is entered. Then the change is made with the very fields that were submitted."""
    change = make_change(pages, endpoint)
    owner = pages.person(Role.OWNER)
    clock.advance(OVER)
    before, audit = read_all_rows(pages.database), pages.audit()
    assert change.submit(owner).status_code == 403
    assert owner.title == PROMPT
    assert (read_all_rows(pages.database), pages.audit()) == (before, audit)
    assert change.rows(pages) != change.expected
    assert enter_password(owner, WRONG).status_code == 422
    assert "This is not your password." in owner.text
    assert change.rows(pages) != change.expected
    assert enter_password(owner, PASSWORD).status_code == 200
    assert change.rows(pages) == change.expected
    assert pages.audit()[len(audit)] == change.action


@pytest.mark.parametrize("endpoint", SENSITIVE)
def test_recent_password_is_not_asked_for_again(pages: DashboardWorld, endpoint: str) -> None:
    change = make_change(pages, endpoint)
    assert change.submit(pages.person(Role.OWNER)).status_code == 200
    assert change.rows(pages) == change.expected


def test_provider_credentials_are_kept_in_the_prompt_and_nowhere_else(
    pages: DashboardWorld, clock: Clock
) -> None:
    change = make_change(pages, "applications.set_provider")
    owner = pages.person(Role.OWNER)
    clock.advance(OVER)
    asked = change.submit(owner)
    assert asked.headers["Cache-Control"] == "no-store"
    assert LONG_SECRET in asked.text
    assert not any("hush" in cookie for cookie in asked.headers.values())
    assert "hush" not in str(read_all_rows(pages.database)) + str(owner.session.cookies)
    enter_password(owner, PASSWORD)
    assert provider_credentials(pages) == SECRETS


def test_prompt_is_due_after_exactly_ten_minutes(pages: DashboardWorld, clock: Clock) -> None:
    now = clock.now()
    clock.stop_at(now)
    owner = pages.person(Role.OWNER)
    clock.stop_at(now + OVER - timedelta(seconds=1))
    assert _invite(owner).status_code == 200
    clock.stop_at(now + OVER)
    assert _invite(owner).status_code == 403


def test_use_of_the_session_does_not_count_as_entering_the_password(
    pages: DashboardWorld, clock: Clock
) -> None:
    owner = pages.person(Role.OWNER)
    for _ in range(3):
        clock.advance(timedelta(minutes=4))
        owner.open("/team")
    assert _invite(owner).status_code == 403


def test_entered_password_counts_for_ten_minutes_in_its_own_session(
    pages: DashboardWorld, clock: Clock
) -> None:
    email = pages.make_member(Role.OWNER)
    here, there = pages.person(), pages.person()
    for person in (here, there):
        person.sign_in(email, PASSWORD)
    clock.advance(OVER)
    _invite(here, "a@example.ly")
    assert enter_password(here, PASSWORD).status_code == 200
    assert _invite(here, "b@example.ly").status_code == 200
    assert _invite(there, "c@example.ly").status_code == 403
    clock.advance(OVER)
    assert _invite(here, "d@example.ly").status_code == 403


def test_session_from_before_the_upgrade_is_asked(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    pages.run("update sessions set password_at = null")
    assert _invite(owner).status_code == 403


def test_changing_ones_own_password_counts_as_entering_it(pages: DashboardWorld, clock: Clock) -> None:
    """Its form asks for the current password itself, whenever that was entered last."""
    owner = pages.person(Role.OWNER)
    clock.advance(OVER)
    owner.open("/account")
    fields = {"current_password": WRONG, "new_password": "seven small boats at sea"}
    assert owner.post("/account/password", **fields).status_code == 422
    assert owner.post("/account/password", **{**fields, "current_password": PASSWORD}).status_code == 200
    assert _invite(owner).status_code == 200


def test_role_is_checked_before_the_password(pages: DashboardWorld, clock: Clock) -> None:
    developer, stranger = (
        pages.person(Role.DEVELOPER),
        pages.person(Role.OWNER, pages.make_merchant("Benghazi Books")),
    )
    clock.advance(OVER)
    developer.open("/team")
    assert developer.post("/team/invite", email="a@example.ly", role="viewer").status_code == 403
    assert developer.title == "Your role does not allow this"
    stranger.open("/account")
    assert stranger.post(f"/applications/{pages.application.id}/webhook/secret").status_code == 404


def test_pages_and_background_polls_never_ask(pages: DashboardWorld, clock: Clock) -> None:
    owner = pages.person(Role.OWNER)
    clock.advance(OVER)
    path = f"/applications/{pages.application.id}/deliveries"
    assert owner.open(path).status_code == 200
    assert owner.open(path, **{"X-Part": "list"}).status_code == 200


def test_prompt_without_its_csrf_token_is_refused(pages: DashboardWorld, clock: Clock) -> None:
    owner = pages.person(Role.OWNER)
    clock.advance(OVER)
    _invite(owner)
    fields = {"email": "a@example.ly", "role": "viewer", "confirm_password": PASSWORD}
    refused = owner.session.post(f"{pages.url}/team/invite", data=fields, timeout=30)
    assert refused.status_code == 400
    assert _invite(owner).status_code == 403


def test_prompt_of_a_session_that_has_ended_changes_nothing(pages: DashboardWorld, clock: Clock) -> None:
    owner = pages.person(Role.OWNER)
    clock.advance(OVER)
    _invite(owner)
    pages.run("update sessions set expires_at = mizan_now()")
    assert enter_password(owner, PASSWORD).status_code == 401
    assert pages.rows("select from members where email = 'a@example.ly'") == []


def test_wrong_password_is_recorded_as_a_failed_sign_in(pages: DashboardWorld, clock: Clock) -> None:
    owner = pages.person(Role.OWNER)
    now = clock.now()
    clock.stop_at(now + OVER)
    _invite(owner)
    for _ in range(ACCOUNT.free):
        assert enter_password(owner, WRONG).status_code == 422
    assert enter_password(owner, WRONG).status_code == 429
    query = "select reason, failures, merchant_id, address from failed_sign_ins order by reason"
    merchant = pages.merchant.id
    assert pages.rows(query) == [
        ("throttled", 1, merchant, "127.0.0.1"),
        ("wrong_password", ACCOUNT.free, merchant, "127.0.0.1"),
    ]


def test_guesses_in_all_forms_are_counted_together(pages: DashboardWorld, clock: Clock) -> None:
    """Somebody with a stolen cookie has no more guesses by using the prompt, the account page and the sign-in."""
    email = pages.make_member(Role.OWNER)
    thief = pages.person()
    thief.sign_in(email, PASSWORD)
    now = clock.now()
    clock.stop_at(now + OVER)

    def guess(form: int, password: str = WRONG) -> int:
        if form == 0:
            _invite(thief)
            return enter_password(thief, password).status_code
        if form == 1:
            thief.open("/account")
            fields = {"current_password": password, "new_password": "seven small boats at sea"}
            thief.post("/account/password", **fields)
            return 429 if "Too many wrong passwords." in thief.text else thief.response.status_code
        return thief.sign_in(email, password).status_code

    statuses = [guess(number % 3) for number in range(ACCOUNT.free + 3)]
    assert statuses == [422] * ACCOUNT.free + [429] * 3
    assert [guess(form, PASSWORD) for form in range(3)] == [429] * 3, "the right one is not looked at"
    assert pages.rows("select from members where email = 'a@example.ly'") == []
    clock.stop_at(now + OVER + timedelta(seconds=ACCOUNT.longest_wait_s))
    assert guess(0, PASSWORD) == 200


def test_right_password_resets_the_guesses(pages: DashboardWorld, clock: Clock) -> None:
    owner = pages.person(Role.OWNER)
    now = clock.now()
    for number in range(3):
        clock.stop_at(now + OVER * (number + 1))
        _invite(owner, f"{number}@example.ly")
        for _ in range(ACCOUNT.free - 1):
            assert enter_password(owner, WRONG).status_code == 422
        assert enter_password(owner, PASSWORD).status_code == 200


def test_password_that_is_changed_meanwhile_is_wrong(
    pages: DashboardWorld, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    email = pages.make_member(Role.OWNER)
    owner = pages.person()
    owner.sign_in(email, PASSWORD)
    clock.advance(OVER)
    _invite(owner)

    def change_meanwhile(hashed: str | None, text: str) -> bool:
        is_right = is_password(hashed, text)
        with pages.database.transaction() as connection:
            user = find_user(connection, email)
            assert user is not None
            assert rehash_password(connection, user, "another one altogether")
        return is_right

    monkeypatch.setattr(passwords, "is_password", change_meanwhile)
    assert enter_password(owner, PASSWORD).status_code == 422
    monkeypatch.undo()
    assert pages.rows("select from members where email = 'a@example.ly'") == []


def test_prompt_keeps_the_language_and_names_the_account(pages: DashboardWorld, clock: Clock) -> None:
    email = pages.make_member(Role.OWNER)
    owner = pages.person(lang="ar")
    owner.sign_in(email, PASSWORD)
    clock.advance(OVER)
    html = _invite(owner).text
    assert owner.title == "أدخل كلمة المرور للمتابعة"
    assert (
        f'<input type="email" name="confirm_username" value="{email}" autocomplete="username" hidden>' in html
    )
    assert 'autocomplete="current-password"' in html


def _invite(person: PageClient, email: str = "a@example.ly") -> requests.Response:
    person.open("/team")
    return person.post("/team/invite", email=email, role="viewer")
