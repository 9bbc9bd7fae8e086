"""Operators sign in to the monitor with their own accounts."""

from dataclasses import replace
from uuid import uuid4

import pytest

from services.monitor.app import make_app
from shared.console.guard import requirement_of
from shared.domain.accounts.joining import add_member
from shared.domain.accounts.roles import Role
from shared.domain.accounts.throttles import ADDRESS
from stack.engines import Engines
from tests.clock import Clock
from tests.dashboard.delivery_rows import Deliveries
from tests.databases import read_all_rows
from tests.monitor.world import PASSWORD, MonitorWorld
from tests.page_client import PageClient
from tests.shared.domain.dead_letters.dead_letter_topic import DeadLetterTopic


def test_pages_redirect_to_the_sign_in_without_a_session(pages: MonitorWorld) -> None:
    guest = pages.person(is_operator=False)
    sections = ("/", "/topics", "/dead-letters", "/attempts", "/applications", "/log", "/account")
    for path in (*sections, "/topics/webhooks.deliver"):
        assert guest.open(path).url.split("?")[0] == f"{pages.url}/sign-in"
    assert guest.open("/", **{"X-Part": "all"}).status_code == 401


def test_an_operator_signs_in_and_out(pages: MonitorWorld) -> None:
    person = pages.person()
    assert person.response.url == f"{pages.url}/"
    person.post("/sign-out")
    assert person.open("/").url.startswith(f"{pages.url}/sign-in")
    assert pages.audit() == ["signed_in", "signed_out"]


def test_wrong_password_and_unknown_email_get_the_same_response(pages: MonitorWorld) -> None:
    email = pages.make_operator()
    person = pages.person(is_operator=False)
    said = {
        (person.sign_in(address, password).status_code, person.text.replace(address, ""))
        for address, password in ((email, "not the password"), ("nobody@example.ly", PASSWORD))
    }
    assert len(said) == 1
    assert next(iter(said))[0] == 422


def test_merchant_member_cannot_sign_in_to_the_monitor(pages: MonitorWorld) -> None:
    with pages.database.transaction() as connection:
        add_member(connection, pages.merchant_id, "owner@example.ly", Role.OWNER, PASSWORD)
    person = pages.person(is_operator=False)
    assert person.sign_in("owner@example.ly", PASSWORD).status_code == 422
    assert pages.audit() == []


def test_guessing_passwords_is_rate_limited(pages: MonitorWorld, clock: Clock) -> None:
    clock.stop_at(clock.now())
    email = pages.make_operator()
    person = pages.person(is_operator=False)
    codes = [person.sign_in(email, f"guess number {number}").status_code for number in range(7)]
    assert codes == [422] * 5 + [429] * 2
    assert person.sign_in(email, PASSWORD).status_code == 429


def test_operators_behind_a_proxy_have_their_own_addresses(world: MonitorWorld, clock: Clock) -> None:
    """Of X-Forwarded-For, only what our own proxy added counts: in the throttle and in the audit log."""
    clock.stop_at(clock.now())
    world.settings = replace(world.settings, trusted_proxies=1)
    with world.serve():
        guesser = world.person_at("198.51.100.1, 192.0.2.66")
        codes = [
            guesser.sign_in(f"nobody-{n}@example.ly", PASSWORD).status_code for n in range(ADDRESS.free + 1)
        ]
        assert codes == [422] * ADDRESS.free + [429]
        guesser.session.headers["X-Forwarded-For"] = "198.51.100.2, 192.0.2.66"
        assert guesser.sign_in(world.make_operator(), PASSWORD).status_code == 429
        person = world.person_at("198.51.100.1, 192.0.2.7")
        assert person.sign_in(world.make_operator(), PASSWORD).url == f"{world.url}/"
        assert world.rows("select address from audit_log") == [("192.0.2.7",)]
        assert world.rows("select address from sessions") == [("192.0.2.7",)]


def test_claimed_addresses_are_ignored_without_a_trusted_proxy(pages: MonitorWorld) -> None:
    person = pages.person_at("192.0.2.7")
    person.sign_in(pages.make_operator(), PASSWORD)
    assert pages.rows("select address from audit_log") == [("127.0.0.1",)]


def test_removed_operator_is_signed_out_at_once(pages: MonitorWorld, operator: PageClient) -> None:
    assert operator.open("/account").status_code == 200
    pages.run("update operators set removed_at = now()")
    assert operator.open("/account").url.startswith(f"{pages.url}/sign-in")


@pytest.mark.kills
def test_only_known_sessions_can_read_pages_while_postgresql_is_down(
    pages: MonitorWorld, killable_engines: Engines
) -> None:
    """Sessions that were ended get 503, and nobody can change anything."""
    email = pages.make_operator()
    stays, leaves, ended = (pages.person(is_operator=False) for _ in range(3))
    for person in (leaves, ended):
        person.sign_in(email, PASSWORD)
    stays.sign_in(pages.make_operator(), PASSWORD)
    kept = leaves.session.cookies.copy()
    leaves.open("/")
    leaves.post("/account/sessions", session="others")
    leaves.open("/")
    leaves.post("/sign-out")
    leaves.session.cookies = kept
    killable_engines.postgres.kill()
    assert stays.open("/").status_code == 200
    assert stays.post("/sign-out").status_code == 503
    assert [person.open("/").status_code for person in (leaves, ended)] == [503, 503]


def test_actions_of_operators_are_in_the_operators_audit_log_only(
    pages: MonitorWorld, operator: PageClient
) -> None:
    assert "Signed in" in operator.open("/log").text
    assert pages.rows("select merchant_id, operator_id is not null from audit_log") == [(None, True)]


def test_changing_the_password_ends_other_sessions(pages: MonitorWorld) -> None:
    email = pages.make_operator()
    first, second = (pages.person(is_operator=False) for _ in range(2))
    for person in (first, second):
        person.sign_in(email, PASSWORD)
    first.open("/account")
    first.post("/account/password", current_password=PASSWORD, new_password="another long and new one")
    assert first.open("/").url == f"{pages.url}/"
    assert second.open("/").url.startswith(f"{pages.url}/sign-in")
    assert second.sign_in(email, "another long and new one").url == f"{pages.url}/"


def test_cookie_with_https_is_for_this_host_only_and_lax(pages: MonitorWorld) -> None:
    urls = replace(pages.settings.public_urls, monitor="https://monitor.mizan.example")
    app = make_app(replace(pages.settings, public_urls=urls), pages.service_database, pages.inspector)
    cookie = app.test_client().get("/sign-in").headers["Set-Cookie"]
    assert cookie.startswith("__Host-mizan-monitor=")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=Lax"} <= set(cookie.split("; "))


def test_no_get_request_changes_anything(
    pages: MonitorWorld, operator: PageClient, dead_letter_topic: DeadLetterTopic
) -> None:
    """A link of another site is followed with the operator's cookie (SameSite=Lax), so it must only read."""
    dead_letter_topic.add(dead_letter_topic.letter(b"{}"))
    known = {
        "application": pages.application.id,
        "delivery": Deliveries(pages.database, pages.application.id).make("failed", 500, tries=9),
        "offset": 0,
        "name": "webhooks.deliver",
    }
    before = read_all_rows(pages.database)
    app = make_app(pages.settings, pages.service_database, pages.inspector)
    opened = 0
    for rule in app.url_map.iter_rules():
        if "GET" in (rule.methods or ()) and requirement_of(app.view_functions[rule.endpoint]):
            built = rule.build({name: known.get(name, uuid4()) for name in rule.arguments})
            assert built is not None
            answer = operator.open(built[1])
            assert answer.status_code in (200, 404), rule
            opened += answer.status_code == 200
    assert opened > 10
    assert read_all_rows(pages.database) == before


def test_operator_cannot_choose_a_common_password(pages: MonitorWorld) -> None:
    person = pages.person()
    person.open("/account")
    refused = person.post("/account/password", current_password=PASSWORD, new_password="password1234")
    assert (refused.status_code, "Many people use this password" in person.text) == (422, True)


def test_failed_sign_ins_of_operators_are_in_their_audit_log(pages: MonitorWorld, clock: Clock) -> None:
    clock.stop_at(clock.now())
    email, removed = pages.make_operator(), pages.make_operator()
    pages.run("update operators set removed_at = now() where email = %s", removed)
    person = pages.person(is_operator=False)
    for _ in range(2):
        person.sign_in(email, "not the password")
    person.sign_in(removed, PASSWORD)
    person.sign_in("the password by mistake", PASSWORD)
    rows = pages.rows("select service, reason, failures, merchant_id from failed_sign_ins order by id")
    assert rows == [
        ("monitor", "wrong_password", 2, None),
        ("monitor", "removed", 1, None),
        ("monitor", "unknown_account", 1, None),
    ]
    operator = pages.person()
    operator.open("/log")
    assert operator.text.count("Failed to sign in") == 3
    assert f"operator {email}" in operator.text
    assert "by mistake" not in operator.text


def test_error_page_says_where_its_link_leads(operator: PageClient) -> None:
    assert operator.open("/no/such/page").status_code == 404
    assert '<a class="button plain" href="/">To the overview</a>' in operator.response.text
