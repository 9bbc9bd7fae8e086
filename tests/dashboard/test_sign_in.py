"""Signing in and out, and the protection against guessing."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from time import perf_counter

import pytest
from requests import Response

from services.dashboard.app import make_app
from shared.domain.accounts.roles import Role
from shared.domain.accounts.throttles import ACCOUNT, ADDRESS
from tests.clock import Clock
from tests.dashboard.world import PASSWORD, DashboardWorld
from tests.page_client import PageClient

WRONG = "not the password at all"


def test_an_owner_signs_in_and_out(pages: DashboardWorld) -> None:
    email = pages.make_member(Role.OWNER)
    person = pages.person()
    assert person.open("/").url == f"{pages.url}/sign-in?next=/"
    answer = person.sign_in(email.upper(), PASSWORD)
    assert answer.status_code == 200
    assert email in person.text
    person.post("/sign-out")
    assert person.title == "Sign in"
    assert person.open("/account").url.startswith(f"{pages.url}/sign-in")
    assert pages.audit() == ["signed_in", "signed_out"]


def test_sign_in_redirects_to_the_requested_page(pages: DashboardWorld) -> None:
    person = pages.person()
    person.open("/audit?before=1")
    answer = person.post("/sign-in", email=pages.make_member(Role.VIEWER), password=PASSWORD)
    assert answer.url == f"{pages.url}/audit?before=1"


def test_sign_in_redirects_to_no_other_site(pages: DashboardWorld) -> None:
    for elsewhere in (
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/a\nb",
        "javascript:1",
    ):
        person = pages.person()
        fields = {"email": pages.make_member(Role.VIEWER), "password": PASSWORD, "next": elsewhere}
        assert person.post("/sign-in", **fields).url == f"{pages.url}/", elsewhere


def test_sign_in_errors_do_not_reveal_which_emails_exist(pages: DashboardWorld) -> None:
    """Same text and status for a wrong password and an unknown email."""
    known = pages.make_member(Role.OWNER)
    answers = {
        email: _try(pages.person(), email, WRONG) for email in (known, "nobody@example.ly", "a\0b@x.ly", "")
    }
    texts = {
        answer.text.replace(email, "…") for email, answer in answers.items() if email and "\0" not in email
    }
    assert {answer.status_code for answer in answers.values()} == {422}
    assert len({_without_token(text) for text in texts}) == 1


@pytest.mark.usefixtures("costly_passwords")
def test_timing_does_not_reveal_which_emails_exist(pages: DashboardWorld) -> None:
    """For an unknown email, a made-up hash is verified: argon2 takes longer than everything else.

    The fastest of a few runs counts, because other processes can delay any of them.
    """
    known = pages.make_member(Role.OWNER)
    person = pages.person()
    times: dict[str, list[float]] = {known: [], "nobody@example.ly": []}
    for _ in range(3):
        for email, took in times.items():
            began = perf_counter()
            _try(person, email, WRONG)
            took.append(perf_counter() - began)
    assert min(times["nobody@example.ly"]) > min(times[known]) / 3


@pytest.mark.parametrize("is_known", [True, False])
def test_guesses_are_throttled_whether_or_not_the_account_exists(
    pages: DashboardWorld, clock: Clock, is_known: bool
) -> None:
    email = pages.make_member(Role.OWNER) if is_known else "nobody@example.ly"
    person = pages.person()
    clock.stop_at(clock.now())
    for _ in range(ACCOUNT.free):
        assert _try(person, email, WRONG).status_code == 422
    slowed = _try(person, email, PASSWORD)
    assert slowed.status_code == 429
    assert "Wait a minute" in person.text
    clock.advance(timedelta(seconds=ACCOUNT.longest_wait_s))
    assert _try(person, email, PASSWORD).status_code == (200 if is_known else 422)


def test_correct_password_resets_the_throttle(pages: DashboardWorld) -> None:
    email = pages.make_member(Role.OWNER)
    for _ in range(3):
        for _ in range(ACCOUNT.free - 1):
            assert _try(pages.person(), email, WRONG).status_code == 422
        assert _try(pages.person(), email, PASSWORD).status_code == 200


def test_guesses_for_many_accounts_are_throttled(pages: DashboardWorld, clock: Clock) -> None:
    person = pages.person()
    clock.stop_at(clock.now())
    for number in range(ADDRESS.free):
        assert _try(person, f"nobody-{number}@example.ly", WRONG).status_code == 422
    assert _try(person, pages.make_member(Role.OWNER), PASSWORD).status_code == 429


def test_members_behind_a_proxy_have_their_own_addresses(world: DashboardWorld) -> None:
    world.settings = replace(world.settings, trusted_proxies=1)
    with world.serve():
        person = world.person()
        person.session.headers["X-Forwarded-For"] = "198.51.100.1, 192.0.2.7"
        person.sign_in(world.make_member(Role.OWNER), PASSWORD)
        assert world.rows("select address from audit_log") == [("192.0.2.7",)]


def test_concurrent_guesses_are_throttled(pages: DashboardWorld, clock: Clock) -> None:
    clock.stop_at(clock.now())
    email = pages.make_member(Role.OWNER)
    people = [pages.person() for _ in range(12)]
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda person: _try(person, email, WRONG), people))
    assert sorted(answer.status_code for answer in answers) == [422] * ACCOUNT.free + [429] * (
        12 - ACCOUNT.free
    )


def test_unused_session_expires(pages: DashboardWorld, clock: Clock) -> None:
    person = pages.person(Role.VIEWER)
    clock.advance(timedelta(hours=11))
    assert person.open("/account").url == f"{pages.url}/account"
    clock.advance(timedelta(hours=11))
    assert person.open("/account").url == f"{pages.url}/account"
    clock.advance(timedelta(hours=13))
    assert person.open("/account").url.startswith(f"{pages.url}/sign-in")


def test_session_expires_after_a_week_even_if_used(pages: DashboardWorld, clock: Clock) -> None:
    person = pages.person(Role.VIEWER)
    for _ in range(15):
        clock.advance(timedelta(hours=11))
        assert person.open("/account").url == f"{pages.url}/account"
    clock.advance(timedelta(hours=5))
    assert person.open("/account").url.startswith(f"{pages.url}/sign-in")


def test_background_polls_do_not_prolong_a_session(pages: DashboardWorld, clock: Clock) -> None:
    person = pages.person(Role.VIEWER)
    deliveries = f"/applications/{pages.application.id}/deliveries"
    clock.advance(timedelta(hours=11))
    assert person.open(deliveries, **{"X-Part": "list"}).status_code == 200
    clock.advance(timedelta(hours=2))
    assert person.open(deliveries, **{"X-Part": "list"}).status_code == 401


def test_a_session_can_be_ended_from_another_browser(pages: DashboardWorld) -> None:
    email = pages.make_member(Role.OWNER)
    lost, own = pages.person(), pages.person()
    lost.sign_in(email, PASSWORD)
    own.sign_in(email, PASSWORD)
    own.open("/account")
    own.post("/account/sessions", session="others")
    assert own.open("/account").url == f"{pages.url}/account"
    assert lost.open("/account").url.startswith(f"{pages.url}/sign-in")


def test_session_of_another_member_cannot_be_ended(pages: DashboardWorld) -> None:
    other, own = pages.person(Role.OWNER), pages.person(Role.OWNER)
    hashes = [row[0].hex() for row in pages.rows("select hash from sessions order by created_at")]
    own.open("/account")
    own.post("/account/sessions", session=hashes[0])
    assert other.open("/account").url == f"{pages.url}/account"
    assert "session_ended" not in pages.audit()


def test_old_cookie_is_invalid_after_sign_out(pages: DashboardWorld) -> None:
    person = pages.person(Role.OWNER)
    kept = dict(person.session.cookies)
    person.open("/account")
    person.post("/sign-out")
    person.session.cookies.clear()
    person.session.cookies.update(kept)
    assert person.open("/account").url.startswith(f"{pages.url}/sign-in")


def test_changing_the_password_needs_the_old_one_and_ends_other_sessions(pages: DashboardWorld) -> None:
    email = pages.make_member(Role.DEVELOPER)
    other, person = pages.person(), pages.person()
    other.sign_in(email, PASSWORD)
    person.sign_in(email, PASSWORD)
    person.open("/account")
    wrong = person.post("/account/password", current_password=WRONG, new_password="a long new sentence")
    assert (wrong.status_code, "This is not your password." in person.text) == (422, True)
    for bad, reason in (
        ("short", "Choose a password of 12 to 200 characters."),
        ("seven boats " * 20, "Choose a password of 12 to 200 characters."),
        ("password1234", "Many people use this password"),
        (f"{email} and more", "without your email address"),
        ("seven boats of mizan", "without the name Mizan"),
    ):
        refused = person.post("/account/password", current_password=PASSWORD, new_password=bad)
        assert (refused.status_code, reason in person.text) == (422, True), bad
    done = person.post("/account/password", current_password=PASSWORD, new_password="a long new sentence")
    assert done.url == f"{pages.url}/account"
    assert "Your password was changed." in person.text
    assert other.open("/account").url.startswith(f"{pages.url}/sign-in")
    assert _try(pages.person(), email, PASSWORD).status_code == 422
    assert _try(pages.person(), email, "a long new sentence").url == f"{pages.url}/"


def test_refused_password_is_explained_in_arabic(pages: DashboardWorld) -> None:
    email = pages.make_member(Role.OWNER)
    person = pages.person(lang="ar")
    person.sign_in(email, PASSWORD)
    person.open("/account")
    person.post("/account/password", current_password=PASSWORD, new_password="password1234")
    assert "كثيرون يستخدمون كلمة المرور هذه" in person.text


def test_a_member_of_two_merchants_chooses_one(pages: DashboardWorld) -> None:
    """The account of the email address has a membership in each."""
    second = pages.make_merchant("Benghazi Books")
    email = pages.make_member(Role.OWNER)
    pages.make_member(Role.VIEWER, second, email)
    person = pages.person()
    person.sign_in(email, PASSWORD)
    assert person.title == "Choose a merchant"
    wanted = pages.rows("select id from members where email = %s and merchant_id = %s", email, second.id)[0][
        0
    ]
    person.post("/sign-in/merchant", member=str(wanted))
    assert "Benghazi Books" in person.text


def test_only_members_with_the_given_password_can_be_chosen(pages: DashboardWorld) -> None:
    victim = pages.rows("select id from members where email = %s", pages.make_member(Role.OWNER))[0][0]
    person = pages.person()
    answer = person.post("/sign-in/merchant", member=str(victim))
    assert answer.url == f"{pages.url}/sign-in"


def test_form_without_its_csrf_token_is_refused(pages: DashboardWorld) -> None:
    person = pages.person()
    fields = {"email": pages.make_member(Role.OWNER), "password": PASSWORD, "csrf_token": ""}
    answer = person.post("/sign-in", **fields)
    assert (answer.status_code, person.title) == (400, "This page was open for too long")


def test_cookie_and_headers_with_https(pages: DashboardWorld) -> None:
    urls = replace(pages.settings.public_urls, dashboard="https://dashboard.mizan.example")
    app = make_app(replace(pages.settings, public_urls=urls), pages.service_database)
    answer = app.test_client().get("/sign-in")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("__Host-mizan-dashboard=")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=Lax"} <= set(cookie.split("; "))
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert "max-age" in answer.headers["Strict-Transport-Security"]


def _try(person: PageClient, email: str, password: str) -> Response:
    return person.sign_in(email, password)


def _without_token(text: str) -> str:
    before, _, rest = text.partition('name="csrf_token" value="')
    return before + rest.partition('"')[2]


def test_sessions_are_named_by_browser_and_system(pages: DashboardWorld) -> None:
    """A hostile user agent is text, and is cut."""
    agents = ["Mozilla/5.0 (Android 14; rv:132.0) Firefox/132.0", "<script>alert(1)</script>" + "x" * 5000]
    email = pages.make_member(Role.VIEWER)
    for agent in agents:
        person = pages.person()
        person.session.headers["User-Agent"] = agent
        person.sign_in(email, PASSWORD)
    page = person.open("/account").text
    assert "Firefox on Android" in person.text
    assert "Unknown browser" in person.text
    assert agents[0] in person.text
    assert "<script>alert" not in page
    assert "x" * 300 not in page
    arabic = pages.person(lang="ar")
    arabic.sign_in(email, PASSWORD)
    arabic.open("/account")
    assert "Firefox على Android" in arabic.text


def test_error_page_says_where_its_link_leads(pages: DashboardWorld) -> None:
    person = pages.person(Role.VIEWER)
    assert person.open("/no/such/page").status_code == 404
    assert '<a class="button plain" href="/">To your applications</a>' in person.response.text
    stranger = pages.person()
    assert stranger.open("/no/such/page").status_code == 404
    assert '<a class="button plain" href="/sign-in">To the sign-in page</a>' in stranger.response.text
