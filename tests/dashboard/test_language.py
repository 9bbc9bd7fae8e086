"""The language of pages: the person's choice, else the browser's preference, else Arabic."""

import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest

from shared.domain.accounts.roles import Role
from tests.catalogue import DIRECTIONS
from tests.dashboard.busy_shop import open_busy_shop
from tests.dashboard.world import PASSWORD, DashboardWorld
from tests.page_client import PageClient

_SPOKEN = re.compile(r'<html lang="(\w+)" dir="(\w+)">')
_OTHER = re.compile(r'<a class="language" href="([^"]*)" lang="(\w+)"')


def _speaks(person: PageClient, lang: str) -> None:
    assert _SPOKEN.findall(person.response.text) == [(lang, DIRECTIONS[lang])], person.response.url


def _switch(person: PageClient, lang: str) -> None:
    """Follow the link to the other language."""
    ((href, other),) = _OTHER.findall(person.response.text)
    assert other == lang
    person.open(unescape(href))
    _speaks(person, lang)


def test_language_link_keeps_the_page_and_its_filters(pages: DashboardWorld) -> None:
    shop = open_busy_shop(pages, pages.merchant.id)
    person = pages.person(Role.OWNER)
    for section in (
        "deliveries?status=failed&from=2026-01-31&id=",
        "payments?status=succeeded&search=طلب+ORDER-77&duplicates=yes",
        f"payments/{shop.payment}",
    ):
        person.open(shop.path(section))
        asked, rows = urlsplit(person.response.url), person.response.text.count("<tr")
        for lang in ("ar", "en"):
            _switch(person, lang)
            now = urlsplit(person.response.url)
            assert now.path == asked.path
            assert parse_qs(now.query) == {**parse_qs(asked.query), "lang": [lang]}
            assert person.response.text.count("<tr") == rows


@pytest.mark.parametrize("lang", ["ar", "en"])
def test_chosen_language_is_kept_from_sign_in_to_after_sign_out(pages: DashboardWorld, lang: str) -> None:
    """Without a language in any URL."""
    person = pages.person(lang="en" if lang == "ar" else "ar")
    _switch(person, lang)
    person.sign_in(pages.make_member(Role.OWNER), PASSWORD)
    for path in ("/", "/team", "/applications/new"):
        person.open(path)
        _speaks(person, lang)
        assert len(re.findall(r"\blang=\w", person.response.text)) == 1, "only the link to the other language"
    assert person.post("/applications/new", name="Coffee to go", methods="card").status_code == 200
    _speaks(person, lang)
    person.post("/sign-out")
    _speaks(person, lang)
    person.open("/audit")
    _speaks(person, lang)
    assert "lang=" not in person.response.url


PREFERRED = {
    "en-GB,en;q=0.9,ar;q=0.8": "en",
    "ar-LY,ar;q=0.9,en;q=0.8": "ar",
    "de,en;q=0.3": "en",
    # No supported language.
    "fr": "ar",
    # Firefox in Libya, with Arabic first: it sends a country, then English with and without one.
    "ar-LY,en-US;q=0.7,en;q=0.3": "ar",
    "en-GB,ar;q=0.5": "en",
}


@pytest.mark.parametrize(("preferred", "lang"), PREFERRED.items())
def test_browser_preference_applies_until_a_language_is_chosen(
    pages: DashboardWorld, preferred: str, lang: str
) -> None:
    person = pages.person()
    person.session.cookies.clear()
    person.session.headers["Accept-Language"] = preferred
    person.open("/sign-in")
    _speaks(person, lang)
    other = "en" if lang == "ar" else "ar"
    _switch(person, other)
    person.open("/sign-in")
    _speaks(person, other)


def test_unknown_languages_in_the_url_are_ignored(pages: DashboardWorld) -> None:
    person = pages.person(lang="en")
    for query in ("lang=fr", "lang=", "lang=AR", "lang=ar%00"):
        person.open(f"/sign-in?{query}")
        _speaks(person, "en")
