"""The names and payment methods of an application."""

from typing import Any

import pytest
import requests

from shared.domain.accounts.roles import Role
from tests.dashboard.world import DashboardWorld
from tests.page_client import PageClient, page_text


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


def test_name_that_customers_see_is_set_in_each_language(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    save(pages, owner, "public-names", public_name_ar=" متجر القهوة ", public_name_en="Coffee & more")
    assert (owner.title, "The name that customers see was saved." in owner.text) == ("Settings", True)
    assert public_names_of(pages) == [("متجر القهوة", "Coffee & more")]
    assert 'value="Coffee &amp; more"' in owner.response.text
    save(pages, owner, "public-names", public_name_ar="متجر القهوة", public_name_en="Coffee & more")
    save(pages, owner, "public-names", public_name_ar="", public_name_en="Coffee")
    assert public_names_of(pages) == [(None, "Coffee")]
    rows = pages.rows("select details from audit_log where action = 'public_names_changed' order by id")
    first = {"name_ar": "متجر القهوة", "before_ar": None, "name_en": "Coffee & more", "before_en": None}
    second = {
        "name_ar": None,
        "before_ar": "متجر القهوة",
        "name_en": "Coffee",
        "before_en": "Coffee & more",
    }
    assert [row[0] for row in rows] == [first, second]
    assert "Changed the name that customers see" in page_text(owner.open("/audit").text)


def public_names_of(world: DashboardWorld) -> list[tuple[str | None, str | None]]:
    return world.rows("select public_name_ar, public_name_en from applications")


def test_hostile_public_name_is_refused_beside_its_field(pages: DashboardWorld) -> None:
    """Nothing is saved, not even the other name."""
    owner = pages.person(Role.OWNER)
    for name in ("x" * 61, "a\x00", "a\nb", "\u202egnp.exe", "a\u2066b", "\u200b", "x" * 20_000):
        answer = save(pages, owner, "public-names", public_name_ar="متجر", public_name_en=name)
        assert answer.status_code == 422, name[:20]
        assert "Choose a name of at most 60 characters" in owner.text
        assert 'id="public_name_en-error"' in answer.text
        assert 'value="متجر"' in answer.text
    assert public_names_of(pages) == [(None, None)]
    assert pages.rows("select from audit_log where action = 'public_names_changed'") == []


def test_only_owners_change_the_name_that_customers_see(pages: DashboardWorld) -> None:
    for role in (Role.DEVELOPER, Role.VIEWER):
        person = pages.person(role)
        assert save(pages, person, "public-names", public_name_en="Coffee").status_code == 403
        assert "Name on English pages" in page_text(person.open(page_of(pages)).text)
    assert public_names_of(pages) == [(None, None)]


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


def test_form_with_an_error_keeps_what_was_ticked(pages: DashboardWorld) -> None:
    """In the settings, where none was ticked, and for a new application, where some were."""
    owner = pages.person(Role.OWNER)
    assert save(pages, owner, "methods").status_code == 422
    assert " checked" not in owner.response.text
    owner.open("/applications/new")
    assert owner.post("/applications/new", name=" ", methods="sadad").status_code == 422
    assert owner.response.text.count(" checked") == 2
    assert 'value="test" checked' in owner.response.text
    assert 'value="sadad" checked' in owner.response.text
