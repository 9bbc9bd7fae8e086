"""The header, menu and assets of every page."""

import gzip
import re
from pathlib import Path

from shared.domain.accounts.roles import Role
from tests.dashboard.world import DashboardWorld

MOST_BYTES = 25 * 1024
_CURRENT = re.compile(r'<a href="([^"]*)" aria-current="(page|true)"')


def test_current_section_is_marked_in_the_menu(pages: DashboardWorld) -> None:
    person = pages.person(Role.VIEWER)
    for section in ("", "/payments", "/deliveries", "/webhook", "/credentials", "/settings"):
        path = f"/applications/{pages.application.id}{section}"
        assert _CURRENT.findall(person.open(path).text) == [(path, "page")]


def test_a_page_inside_a_section_marks_the_section(pages: DashboardWorld) -> None:
    person = pages.person(Role.OWNER)
    assert _CURRENT.findall(person.open("/applications/new").text) == [("/", "true")]
    deliveries = f"/applications/{pages.application.id}/deliveries"
    assert _CURRENT.findall(person.open(f"{deliveries}/resend-failed").text) == [(deliveries, "true")]


def test_sections_are_hidden_without_a_session(pages: DashboardWorld) -> None:
    page = pages.person().open("/sign-in").text
    assert "<nav" not in page
    assert pages.merchant.name not in page


def test_stylesheets_and_script_are_smaller_than_25_kb_compressed(repository_root: Path) -> None:
    folders = [
        repository_root / "services/dashboard/static",
        repository_root / "shared/console/static",
        repository_root / "shared/console/tokens",
    ]
    sizes = {
        path.name: len(gzip.compress(path.read_bytes()))
        for folder in folders
        for path in folder.iterdir()
        if path.suffix in (".css", ".js")
    }
    assert {"tokens.css", "console.css", "console.js"} <= sizes.keys()
    assert sum(sizes.values()) < MOST_BYTES, sizes
