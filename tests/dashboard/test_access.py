"""Every route of the dashboard: who may use it, and who is refused."""

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from werkzeug.routing import Rule

from services.dashboard.app import make_app
from shared.console.guard import requirement_of
from shared.domain.accounts.roles import ROLE_PERMISSIONS, Permission, Role
from tests.constants import UNKNOWN_ID
from tests.dashboard.delivery_rows import Deliveries
from tests.dashboard.world import DashboardWorld
from tests.databases import read_all_rows
from tests.page_client import PageClient

_OPEN = {
    "people.sign_in",
    "people.check",
    "people.choose",
    "people.invitation",
    "people.join",
}
_OTHERS = {
    "static",
    "console.static",
    "tokens.static",
    "operations.healthz",
    "operations.readyz",
    "operations.metrics",
}


def test_each_route_states_the_permission_it_requires(world: DashboardWorld) -> None:
    """Only a few are public."""
    app = make_app(world.settings, world.service_database)
    needs = {name: requirement_of(view) for name, view in app.view_functions.items()}
    assert {name for name, need in needs.items() if need is None} == _OTHERS
    assert {name for name, need in needs.items() if need and not isinstance(need, Permission)} == _OPEN
    changing = {rule.endpoint for rule in app.url_map.iter_rules() if "POST" in (rule.methods or ())}
    own_account = {"people.sign_out", "people.change_password", "people.end_session"}
    assert {name for name in changing if needs[name] is Permission.READ} == own_account


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.VIEWER])
def test_routes_without_the_permission_are_refused(pages: DashboardWorld, role: Role) -> None:
    person = pages.person(role)
    person.open("/account")
    refused = [
        path
        for path, need in _changing(pages)
        if isinstance(need, Permission) and need not in ROLE_PERMISSIONS[role]
    ]
    assert refused
    for path in refused:
        person.open("/account")
        answer = person.post(path)
        assert (answer.status_code, person.title) == (403, "Your role does not allow this"), path


def test_routes_without_a_session_lead_to_the_sign_in(pages: DashboardWorld) -> None:
    person = pages.person()
    token = person.hidden("/sign-in")["csrf_token"]
    for path, need in _changing(pages):
        if isinstance(need, Permission):
            answer = person.post(path, csrf_token=token)
            assert (answer.status_code, person.title) == (401, "You are not signed in"), path
    for rule, need in _rules(pages, "GET"):
        if isinstance(need, Permission):
            assert person.open(_path(pages, rule)).url.startswith(f"{pages.url}/sign-in?next="), rule


def test_application_of_another_merchant_is_404(pages: DashboardWorld) -> None:
    """For reading and changing, also for an owner of another merchant."""
    stranger = pages.person(Role.OWNER, pages.make_merchant("Benghazi Books"))
    rules = [*_rules(pages, "GET"), *_rules(pages, "POST")]
    walked = [rule for rule, _ in rules if "application" in rule.arguments]
    assert len(walked) > 10
    for rule in walked:
        stranger.open("/account")
        path = _path(pages, rule)
        answer = stranger.post(path) if "POST" in (rule.methods or ()) else stranger.open(path)
        assert answer.status_code == 404, path


def test_invalid_application_id_is_404(pages: DashboardWorld) -> None:
    person = pages.person(Role.OWNER)
    odd = ("x", "%00", "0" * 32, UNKNOWN_ID, "..", "%F0%9F%92%A9", "nonsense", "%ED%B3%BF", "{}")
    for application in odd:
        for section in ("deliveries", "settings", "credentials", "webhook"):
            path = f"/applications/{application}/{section}"
            assert person.open(path).status_code == 404, path


def test_partial_without_a_session_is_401(pages: DashboardWorld) -> None:
    """So the script of the page does not put a sign-in page into a table."""
    person = PageClient(pages.url)
    path = f"/applications/{pages.application.id}/deliveries"
    assert person.open(path, **{"X-Part": "list"}).status_code == 401


def test_no_get_request_changes_anything(pages: DashboardWorld) -> None:
    """A link of another site is followed with the member's cookie (SameSite=Lax), so it must only read.

    The audit log notes who has exported payments.
    """
    owner = pages.person(Role.OWNER)
    delivery = Deliveries(pages.database, pages.application.id).make("failed", 500)
    before = read_all_rows(pages.database)
    opened = 0
    for rule, _ in _rules(pages, "GET"):
        answer = owner.open(_path(pages, rule, delivery))
        assert answer.status_code in (200, 404, 410), rule
        opened += answer.status_code == 200
    assert opened > 10
    assert read_all_rows(pages.database) == before


def _changing(pages: DashboardWorld) -> list[tuple[str, object]]:
    return [(_path(pages, rule), need) for rule, need in _rules(pages, "POST")]


def _rules(pages: DashboardWorld, method: str) -> Iterator[tuple[Rule, object]]:
    app = make_app(pages.settings, pages.service_database)
    for rule in app.url_map.iter_rules():
        if method in (rule.methods or ()) and rule.endpoint not in _OTHERS:
            yield rule, requirement_of(app.view_functions[rule.endpoint])


def _path(pages: DashboardWorld, rule: Rule, delivery: UUID | None = None) -> str:
    """Return the path of a route with this merchant's application, this delivery, and with unknown other ids."""
    values = {name: uuid4() for name in rule.arguments} | {"application": pages.application.id}
    values["delivery"] = delivery or uuid4()
    built = rule.build({name: values[name] for name in rule.arguments})
    assert built is not None
    return built[1]
