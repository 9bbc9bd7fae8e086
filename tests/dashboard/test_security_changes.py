"""Owners see on every page that there were security changes, until they mark them as seen."""

import re

from shared.domain.accounts.roles import Role
from shared.domain.audit_log import Action, Actor, add_audit_entry
from shared.domain.security_changes import SECURITY_ACTIONS
from tests.dashboard.world import PASSWORD, DashboardWorld, Merchant
from tests.page_client import PageClient, main_html

_NOTICE = re.compile(r"Security changes: (\d+) since .* See them in the audit log")


def test_index_has_the_actions_of_the_code(world: DashboardWorld) -> None:
    ((definition,),) = world.rows("select pg_get_indexdef('audit_log_security_changes'::regclass)")
    assert set(re.findall(r"'(\w+)'", definition)) == SECURITY_ACTIONS


def test_owners_are_told_of_changes_by_others(pages: DashboardWorld) -> None:
    """Also of operators, on the command line. Nobody but owners is told, and who did it needs no notice."""
    people = {role: pages.person(role) for role in Role}
    actor = pages.person(Role.OWNER)
    _set_url(pages, actor)
    assert _told(people[Role.OWNER]) == 1
    _write(pages, Action.CREDENTIAL_REVOKED, Actor("cli operator mona (uid 1000)", address="host"))
    assert _told(people[Role.OWNER]) == 2
    assert _told(actor) == 1
    assert _told(people[Role.OWNER], f"/applications/{pages.application.id}") == 2
    assert [_told(people[role]) for role in (Role.DEVELOPER, Role.VIEWER)] == [0, 0]


def test_own_change_from_another_address_is_told(pages: DashboardWorld) -> None:
    """It may be of somebody who stole the session."""
    email = pages.make_member(Role.OWNER)
    owner = pages.person()
    owner.sign_in(email, PASSWORD)
    ((member,),) = pages.rows("select id from members where email = %s", email)
    _write(pages, Action.WEBHOOK_URL_SET, Actor(email, member, "127.0.0.1"))
    assert _told(owner) == 0
    _write(pages, Action.WEBHOOK_URL_SET, Actor(email, member, "192.0.2.9"))
    assert _told(owner) == 1


def test_other_actions_and_other_merchants_are_not_told(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    other = pages.make_merchant("Benghazi Books")
    for action in Action:
        _write(pages, action, Actor("Somebody"), other)
    assert _told(owner) == 0
    for action in set(Action) - SECURITY_ACTIONS:
        _write(pages, action, Actor("Somebody"))
    assert _told(owner) == 0


def test_changes_from_before_the_first_sign_in_are_not_told(pages: DashboardWorld) -> None:
    _write(pages, Action.MEMBER_CREATED, Actor("cli operator"))
    assert _told(pages.person(Role.OWNER)) == 0


def test_notice_is_gone_after_the_changes_were_seen(pages: DashboardWorld) -> None:
    """What was changed after the page was opened is still told. Each owner marks for themselves."""
    owner, other = pages.person(Role.OWNER), pages.person(Role.OWNER)
    _write(pages, Action.PROVIDER_SET, Actor("Somebody"))
    assert _told(owner, "/team") == 1
    fields = owner.hidden("/audit/seen")
    _write(pages, Action.PROVIDER_SET, Actor("Somebody"))
    owner.post("/audit/seen", **fields)
    assert owner.response.url == f"{pages.url}/team", "back to the page"
    assert _told(owner) == 1
    _mark(owner)
    assert _told(owner) == 0
    assert _told(other) == 2
    _write(pages, Action.ROLE_CHANGED, Actor("Somebody"))
    assert _told(owner) == 1


def test_changes_of_the_future_cannot_be_marked(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    owner.open("/team")
    owner.post("/audit/seen", until="9999-12-31T23:59:59+00:00")
    assert owner.response.status_code == 200
    _write(pages, Action.PROVIDER_SET, Actor("Somebody"))
    assert _told(owner) == 1
    for invalid in ("", "x", "2026-11-16T10:00:00", "0001-01-01T00:00:00+23:59", "\0"):
        owner.open("/team")
        assert owner.post("/audit/seen", until=invalid).status_code in (200, 422), invalid
        assert _told(owner) == 1
    viewer = pages.person(Role.VIEWER)
    viewer.open("/team")
    assert viewer.post("/audit/seen", until="2026-11-16T10:00:00+00:00").status_code == 403


def test_earlier_changes_cannot_be_marked_as_unseen(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    _write(pages, Action.PROVIDER_SET, Actor("Somebody"))
    _told(owner)
    first = owner.hidden("/audit/seen")
    _write(pages, Action.PROVIDER_SET, Actor("Somebody"))
    assert _told(owner) == 2
    _mark(owner)
    owner.post("/audit/seen", **first)
    assert _told(owner) == 0


def test_page_that_answers_a_form_has_no_notice(pages: DashboardWorld) -> None:
    """Secrets are shown there only once, so nothing must lead away."""
    owner = pages.person(Role.OWNER)
    _write(pages, Action.PROVIDER_SET, Actor("Somebody"))
    path = f"/applications/{pages.application.id}/credentials"
    owner.open(path)
    assert owner.post(f"{path}/api_key").status_code == 200
    assert "Security changes:" not in owner.text


def test_notice_leads_to_the_security_changes_alone(pages: DashboardWorld) -> None:
    """Page by page, without sign-ins and what else is done every day."""
    owner = pages.person(Role.OWNER)
    for number in range(60):
        _write(pages, Action.PROVIDER_SET, Actor(f"Somebody{number:02}"))
        _write(pages, Action.TEST_DELIVERY_SENT, Actor("Nobody"))
    link = re.findall(r'href="(/audit\?show=security)"', owner.open("/").text)[0]
    seen = []
    while link:
        html = owner.open(link).text
        seen += re.findall(r"Somebody\d\d", main_html(html))
        assert "Nobody" not in html
        assert "Signed in" not in owner.text
        link = html.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert seen == [f"Somebody{number:02}" for number in reversed(range(60))]


def _set_url(pages: DashboardWorld, person: PageClient) -> None:
    page = f"/applications/{pages.application.id}/webhook"
    person.open(page)
    person.post(f"{page}/url", url="https://hooks.example.ly/")


def _write(world: DashboardWorld, action: Action, actor: Actor, merchant: Merchant | None = None) -> None:
    with world.database.transaction() as connection:
        add_audit_entry(connection, actor, action, merchant_id=(merchant or world.merchant).id)


def _told(person: PageClient, path: str = "/team") -> int:
    """Return how many changes the page tells of."""
    assert person.open(path).status_code == 200
    found = _NOTICE.search(person.text)
    return int(found[1]) if found else 0


def _mark(person: PageClient) -> None:
    person.post("/audit/seen")
