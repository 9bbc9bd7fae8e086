"""The name and payment methods of an application."""

from typing import Any

import pytest
import requests

from shared.domain.accounts.roles import Role
from tests.dashboard.world import DashboardWorld
from tests.page_client import PageClient


def page_of(world: DashboardWorld) -> str:
    return f"/applications/{world.application.id}/settings"


def save(world: DashboardWorld, person: PageClient, what: str, **fields: Any) -> requests.Response:
    person.open(page_of(world))
    return person.post(f"{page_of(world)}/{what}", **fields)


def methods_of(world: DashboardWorld) -> list[str]:
    return [row[0] for row in world.rows("select method from application_methods order by method")]


def test_an_application_is_renamed(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    answer = save(pages, owner, "name", name="  متجر القهوة ")
    assert (answer.history[0].status_code, owner.title) == (303, "Settings")
    assert "The name was saved." in owner.text
    assert pages.rows("select name from applications") == [("متجر القهوة",)]
    save(pages, owner, "name", name="متجر القهوة")
    rows = pages.rows("select details from audit_log where action = 'application_renamed'")
    assert rows == [({"name": "متجر القهوة", "before": "Tripoli Coffee shop"},)]


def test_an_invalid_name_is_refused_beside_its_field(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    for name in ("", " ", "x" * 201, "a\x00", "a\rb", "x" * 50_000):
        assert save(pages, owner, "name", name=name).status_code == 422, name[:20]
        assert "Choose a name of 1 to 200" in owner.text, name[:20]
    assert pages.rows("select name from applications") == [("Tripoli Coffee shop",)]


def test_payment_methods_are_chosen(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    save(pages, owner, "methods", methods=["adfali"])
    assert methods_of(pages) == ["adfali"]
    assert owner.response.text.count(" checked") == 1
    save(pages, owner, "methods", methods=["sadad", "card", "sadad"])
    assert methods_of(pages) == ["card", "sadad"]
    save(pages, owner, "methods", methods=["card", "sadad"])
    rows = pages.rows("select details from audit_log where action = 'methods_changed' order by id")
    assert [row[0] for row in rows] == [
        {"methods": ["adfali"], "before": ["adfali", "card", "sadad"]},
        {"methods": ["card", "sadad"], "before": ["adfali"]},
    ]


def test_an_application_needs_a_payment_method(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    for methods in ([], ["paypal"], ["\x00"], ["CARD"]):
        assert save(pages, owner, "methods", methods=methods).status_code == 422, methods
        assert "Choose at least one payment method" in owner.text, methods
    assert len(methods_of(pages)) == 3


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.VIEWER])
def test_developers_and_viewers_can_only_read_settings(pages: DashboardWorld, role: Role) -> None:
    person = pages.person(role)
    page = person.open(page_of(pages)).text
    assert "Only owners can change these." in person.text
    assert str(pages.application.id) in person.text
    assert "Bank card Not offered It is enabled, but has no account that can be used. none" in person.text
    assert 'action="/applications/' not in page
    assert "Set account" not in page
