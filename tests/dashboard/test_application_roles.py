"""Permissions for an application: every form, with every role, and of another merchant."""

import pytest

from shared.domain.accounts.roles import Role
from tests.dashboard.world import DashboardWorld
from tests.page_client import PageClient

# Each form, and the page that contains it.
OWNERS = {
    "/applications/new": "/applications/new",
    "{app}/settings/name": "{app}/settings",
    "{app}/settings/public-names": "{app}/settings",
    "{app}/settings/methods": "{app}/settings",
    "{app}/settings/providers/card": "{app}/settings/providers/card",
}
DEVELOPERS = {
    "{app}/credentials/api_key": "{app}/credentials",
    "{app}/credentials/access_token": "{app}/credentials",
    "{app}/credentials/{credential}/revoke": "{app}/credentials",
    "{app}/webhook/url": "{app}/webhook",
    "{app}/webhook/url/remove": "{app}/webhook",
    "{app}/webhook/secret": "{app}/webhook",
    "{app}/webhook/test": "{app}/webhook",
}
CLOSED = ["/applications/new", "{app}/settings/providers/card"]
PAGES = ["{app}/settings", "{app}/credentials", "{app}/webhook"]
STATE = """
select t::text from applications as t union all select t::text from application_methods as t
union all select t::text from credentials as t union all select t::text from webhook_secrets as t
union all select t::text from provider_accounts as t union all select t::text from webhook_deliveries as t
union all select t::text from outbox as t order by 1"""
# Values that would be accepted with the permission.
FIELDS = {
    "name": "New name",
    "public_name_ar": "اسم جديد",
    "methods": "card",
    "adapter": "plutu",
    "api_key": "a",
    "access_token": "b",
    "secret_key": "c",
    "url": "https://new.example.ly/",
    "confirmed": "yes",
    "version": "1",
}


def state(world: DashboardWorld) -> list[object]:
    return world.rows(STATE)


def csrf_token(person: PageClient) -> str:
    person.open("/")
    return person.hidden("")["csrf_token"]


def filled_in(world: DashboardWorld, path: str) -> str:
    ((credential,),) = world.rows(
        "select id from credentials where application_id = %s and kind = 'api_key'", world.application.id
    )
    return path.format(app=f"/applications/{world.application.id}", credential=credential)


@pytest.mark.parametrize(
    ("role", "forbidden"), [(Role.VIEWER, {**OWNERS, **DEVELOPERS}), (Role.DEVELOPER, OWNERS)]
)
def test_a_missing_permission_is_refused_and_changes_nothing(
    pages: DashboardWorld, role: Role, forbidden: dict[str, str]
) -> None:
    """With the values of an owner's form, so that only the role can be the reason."""
    owner, person = pages.person(Role.OWNER), pages.person(role)
    token = csrf_token(person)
    before = state(pages)
    for form, page in forbidden.items():
        owner.open(filled_in(pages, page))
        path = filled_in(pages, form)
        fields = {**owner.hidden(path), **FIELDS, "csrf_token": token}
        assert person.post(path, **fields).status_code == 403, path
    for path in CLOSED:
        assert person.open(filled_in(pages, path)).status_code == 403
    assert state(pages) == before
    assert set(pages.audit()) == {"signed_in"}


def test_every_role_can_read_all_pages(pages: DashboardWorld) -> None:
    for role in Role:
        person = pages.person(role)
        for path in ["/", *(filled_in(pages, each) for each in PAGES)]:
            assert person.open(path).status_code == 200, (role, path)


def test_application_of_another_merchant_is_404_for_every_role(pages: DashboardWorld) -> None:
    """404, never 403."""
    other = pages.make_merchant("Misrata Books")
    before = state(pages)
    for role in Role:
        person = pages.person(role, other)
        token = csrf_token(person)
        for path in (filled_in(pages, each) for each in PAGES):
            assert person.open(path).status_code == 404
        for path in (filled_in(pages, each) for each in [*OWNERS, *DEVELOPERS] if "{app}" in each):
            assert person.post(path, **{**FIELDS, "csrf_token": token}).status_code == 404, path
    assert state(pages) == before


def test_form_without_a_csrf_token_changes_nothing(pages: DashboardWorld) -> None:
    """A form on another site may send our cookie, but not the token."""
    owner = pages.person(Role.OWNER)
    before = state(pages)
    for path in (filled_in(pages, each) for each in [*OWNERS, *DEVELOPERS]):
        assert owner.session.post(f"{pages.url}{path}", FIELDS, timeout=30).status_code == 400, path
    assert state(pages) == before


def test_forms_without_a_session_change_nothing(pages: DashboardWorld) -> None:
    nobody = pages.person()
    before = state(pages)
    token = nobody.hidden("")["csrf_token"]
    for path in (filled_in(pages, each) for each in [*OWNERS, *DEVELOPERS]):
        assert nobody.post(path, **{**FIELDS, "csrf_token": token}).status_code == 401, path
    assert state(pages) == before
