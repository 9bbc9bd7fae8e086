"""Every page is in the menu, every link leads somewhere, and nothing is loaded from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from flask import Flask
from flask_babel import Babel

from services.monitor.inspection.problems import ProblemKind
from services.monitor.overview.labels import RUNBOOKS
from tests.readme.documents import ROOT, Document
from tests.readme.test_statuses_page import CODES

ARABIC = ROOT / "docs" / "ar"
ONLY_ARABIC = {"glossary.md"}
_NAV_ENTRY = re.compile(r"^ +- (?:.*: )?(\S+\.md)$", re.MULTILINE)
_INDENTED = re.compile(r"(?:^(?: {4}.*)?\n)*^ {4}.*$", re.MULTILINE)


class _Page(HTMLParser):
    """The links, ids, and what the browser loads by itself."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.ids: set[str] = set()
        self.inline_scripts = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        elif tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.add(values["href"])
        elif "src" in values:
            self.loaded.add(values["src"])
        elif tag == "script" and values.get("type") != "application/json":
            self.inline_scripts += 1


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, _Page]:
    """All pages, by their addresses."""
    return {
        f"/docs/{path.parent.relative_to(site).as_posix()}/": _Page(path.read_text())
        for path in site.rglob("index.html")
    }


def test_every_link_leads_to_a_page_and_a_heading(pages: dict[str, _Page], site: Path) -> None:
    broken = []
    for address, page in pages.items():
        for link in page.links | page.loaded:
            target = urlsplit(urljoin(address, link))
            if target.scheme or target.path == "/docs":
                continue
            file = site / unquote(target.path).removeprefix("/docs/")
            found = pages.get(target.path)
            anchor = unquote(target.fragment)
            if not (found or file.is_file()) or (found and anchor and anchor not in found.ids):
                broken.append(f"{address}: {link}")
    assert broken == []
    assert len(pages) > 100


@pytest.mark.parametrize("lang", ["en", "ar"])
def test_page_for_unknown_addresses_works_at_every_address(
    lang: str, pages: dict[str, _Page], site: Path
) -> None:
    page = _Page((site / lang / "404.html").read_text())
    for link in page.links | page.loaded:
        path = urlsplit(link).path
        exists = path in pages or (site / path.removeprefix("/docs/")).is_file()
        assert exists or path == "/docs" or link.startswith("#"), link


def test_pages_need_nothing_from_elsewhere_and_have_no_inline_scripts(pages: dict[str, _Page]) -> None:
    assert {address for page in pages.values() for address in page.loaded if "//" in address} == set()
    assert sum(page.inline_scripts for page in pages.values()) == 0


@pytest.mark.parametrize("lang", ["en", "ar"])
def test_every_page_is_in_the_menu(lang: str, pages: dict[str, _Page]) -> None:
    named = _NAV_ENTRY.findall((ROOT / "docs" / "site" / f"{lang}.yml").read_text())
    addresses = {
        re.sub(r"(index|README)/$", "", f"/docs/{lang}/{page.removesuffix('.md')}/") for page in named
    }
    assert addresses == {address for address in pages if address.startswith(f"/docs/{lang}/")}
    assert len(addresses) == len(named)


def test_arabic_covers_quickstart_guides_and_reference_for_merchants() -> None:
    for_merchants = {"index.md", "quickstart.md", "events.md", "sandbox.md", "statuses.md", "versions.md"}
    guides = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs" / "guides").iterdir()}
    written = {path.relative_to(ARABIC).as_posix() for path in ARABIC.rglob("*.md")}
    assert written == for_merchants | guides | ONLY_ARABIC


@pytest.mark.parametrize("path", sorted(ARABIC.rglob("*.md")), ids=lambda path: path.name)
def test_both_languages_have_the_same_code_and_tables(path: Path) -> None:
    name = path.relative_to(ARABIC).as_posix()
    if name in ONLY_ARABIC:
        return
    arabic, english = Document(path), Document(ROOT / "docs" / name)
    assert arabic.blocks() == english.blocks()
    assert _INDENTED.findall(arabic.text) == _INDENTED.findall(english.text)
    assert len(re.findall(r"^#", arabic.text, re.MULTILINE)) == len(
        re.findall(r"^#", english.text, re.MULTILINE)
    )
    if name != "index.md":  # it leads to fewer pages
        assert [len(row) for row in arabic.rows()] == [len(row) for row in english.rows()]


def test_arabic_codes_have_the_names_of_the_arabic_pages() -> None:
    english = Document(ROOT / "docs" / "statuses.md")
    rows = {row[0].strip("`"): row[1] for row in Document(ARABIC / "statuses.md").rows() if len(row) == 4}
    app = Flask(__name__)
    Babel(app, default_locale="ar", default_translation_directories=_catalogues())
    with app.test_request_context():
        named = {str(code): str(label) for _, labels in CODES.values() for code, label in labels.items()}
    assert {row[0].strip("`") for row in english.rows() if len(row) == 4} == rows.keys()
    assert {code: name for code, name in rows.items() if named[code] != name} == {}


def _catalogues() -> str:
    places = ("services/dashboard", "services/checkout", "shared/console")
    return ";".join(str(ROOT / place / "translations") for place in places)


def test_every_problem_of_the_monitor_has_a_runbook(pages: dict[str, _Page]) -> None:
    assert RUNBOOKS.keys() == set(ProblemKind)
    for runbook in RUNBOOKS.values():
        path, _, anchor = f"/docs/en/operations/{runbook}".partition("#")
        assert path in pages, runbook
        assert not anchor or anchor in pages[path].ids, runbook
