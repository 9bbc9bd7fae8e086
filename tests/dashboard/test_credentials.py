"""API keys and access tokens in the dashboard: issued, shown once, listed by prefix, revoked."""

import re
from datetime import timedelta
from uuid import uuid4

import pytest
import requests

from shared.domain.accounts.roles import Role
from shared.platform.tokens import hash_token, token_prefix
from tests.clock import Clock
from tests.dashboard.world import DashboardWorld
from tests.logs import capture_logs
from tests.page_client import PageClient

_SECRET = re.compile(r"(?<![\w-])(?:pk_live|at)_[A-Za-z0-9]{32}(?![\w-])")
KINDS = ["api_key", "access_token"]


def page_of(world: DashboardWorld) -> str:
    return f"/applications/{world.application.id}/credentials"


def issue(
    world: DashboardWorld, person: PageClient, kind: str = "api_key", **fields: str
) -> requests.Response:
    person.open(page_of(world))
    return person.post(f"{page_of(world)}/{kind}", **fields)


def ids(world: DashboardWorld, kind: str = "api_key") -> list[str]:
    return [str(row[0]) for row in world.rows("select id from credentials where kind = %s order by id", kind)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("role", [Role.OWNER, Role.DEVELOPER])
def test_a_credential_is_issued_and_shown_once(pages: DashboardWorld, role: Role, kind: str) -> None:
    with capture_logs(level="DEBUG") as log:
        person = pages.person(role)
        answer = issue(pages, person, kind)
        assert answer.status_code == 200
        (text,) = _SECRET.findall(answer.text)
        assert "shown this once" in person.text
        assert "data-copy " in answer.text
        later = person.open(page_of(pages)).text + person.open("/audit").text
    assert pages.rows("select kind from credentials where hash = %s", hash_token(text)) == [(kind,)]
    assert f"{token_prefix(text)}…" in later
    ((details,),) = pages.rows("select details from audit_log where action = 'credential_issued'")
    assert details == {"kind": kind, "prefix": token_prefix(text)}
    assert text not in later
    assert text not in log.getvalue()


def test_list_of_credentials_shows_last_use_and_state(pages: DashboardWorld, clock: Clock) -> None:
    viewer = pages.person(Role.VIEWER)
    viewer.open(page_of(pages))
    assert viewer.text.count("never Active") == 2
    assert f"{token_prefix(pages.application.api_key)}…" in viewer.text
    assert pages.application.api_key not in viewer.response.text
    pages.run("update credentials set last_used_at = '2026-03-01 10:15:00Z' where kind = 'api_key'")
    pages.run("update credentials set revoked_at = '2026-03-02 11:45:00Z' where kind = 'access_token'")
    viewer.open(page_of(pages))
    assert "1 Mar 2026, 12:15:00 Active" in viewer.text
    assert "never Revoked 2 Mar 2026, 13:45:00" in viewer.text
    assert "None is active" in viewer.text


def test_issuing_twice_with_one_form_issues_once(pages: DashboardWorld) -> None:
    person = pages.person(Role.DEVELOPER)
    form = person.open(page_of(pages))
    person.post(f"{page_of(pages)}/api_key")
    person.response = form
    answer = person.post(f"{page_of(pages)}/api_key")
    assert "This credential was already issued and cannot be shown again" in person.text
    assert not _SECRET.search(answer.text)
    assert len(ids(pages)) == 2
    assert pages.audit().count("credential_issued") == 1


def test_a_form_token_is_valid_for_its_kind_and_application_only(pages: DashboardWorld) -> None:
    other = pages.make_merchant("Misrata Books")
    them, us = pages.person(Role.OWNER, other), pages.person(Role.OWNER)
    them.open(f"/applications/{other.application.id}/credentials")
    theirs = them.hidden(f"/applications/{other.application.id}/credentials/api_key")["form_token"]
    us.open(page_of(pages))
    ours = us.hidden(f"{page_of(pages)}/access_token")["form_token"]
    for form_token in (theirs, ours):
        assert issue(pages, us, form_token=form_token).status_code == 404
    issue(pages, us, form_token="")
    assert "open for too long" in us.text
    assert pages.rows("select count(*) from credentials") == [(4,)]


def test_unknown_kinds_of_credentials_are_404(pages: DashboardWorld) -> None:
    person = pages.person(Role.OWNER)
    for kind in ("webhook_secret", "%00", "API_KEY"):
        assert issue(pages, person, kind).status_code == 404


def test_a_credential_is_revoked_once(pages: DashboardWorld, clock: Clock) -> None:
    person = pages.person(Role.DEVELOPER)
    issue(pages, person)
    first, _ = ids(pages)
    person.open(page_of(pages))
    person.post(f"{page_of(pages)}/{first}/revoke")
    assert "is refused within seconds" in person.text
    before = pages.rows("select id, revoked_at from credentials order by id")
    clock.advance(timedelta(minutes=5))
    person.post(f"{page_of(pages)}/{first}/revoke")
    assert "was already revoked" in person.text
    assert pages.rows("select id, revoked_at from credentials order by id") == before
    assert [str(row[0]) for row in before if row[1]] == [first]
    ((details,),) = pages.rows("select details from audit_log where action = 'credential_revoked'")
    assert details == {"kind": "api_key", "prefix": token_prefix(pages.application.api_key)}


def test_revoking_the_only_credential_has_a_stronger_warning(pages: DashboardWorld) -> None:
    person = pages.person(Role.OWNER)
    page = person.open(page_of(pages)).text
    assert page.count("is the only one of its kind") == 2
    issue(pages, person)
    assert person.open(page_of(pages)).text.count("is the only one of its kind") == 1


def test_credential_of_another_merchant_is_404(pages: DashboardWorld) -> None:
    """So is an unknown id."""
    other = pages.make_merchant("Misrata Books")
    ((theirs,),) = pages.rows(
        "select id from credentials where application_id = %s and kind = 'api_key'", other.application.id
    )
    person = pages.person(Role.OWNER)
    person.open(page_of(pages))
    token = person.hidden("")["csrf_token"]
    for credential in (theirs, uuid4(), "nonsense", "%00"):
        path = f"{page_of(pages)}/{credential}/revoke"
        assert person.post(path, csrf_token=token).status_code == 404
    path = f"/applications/{other.application.id}/credentials"
    assert person.open(path).status_code == 404
    assert person.post(f"{path}/{theirs}/revoke", csrf_token=token).status_code == 404
    assert person.post(f"{path}/api_key", csrf_token=token).status_code == 404
    assert pages.rows("select count(*) from credentials where revoked_at is not null") == [(0,)]
