"""The language of a person: what they chose, or what their browser prefers, or Arabic; and it stays."""

import re
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from shared.people.roles import Role
from tests.dashboard.browser.busy_shop import open_busy_shop
from tests.dashboard.browser.colleague import Colleague, Colleagues
from tests.dashboard.browser.tour import EXPECTED, every_page
from tests.dashboard.world import PASSWORD, DashboardWorld

_NAMES = {"ar": "العربية", "en": "English"}
_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_EXPLAINED = re.compile(r"\([A-Za-z -]+\)")
"""A term that developers know, after the Arabic for it."""
_GIVEN = re.compile(r"\b[A-Z0-9]{10}\b|\S+@\S+|\b(pk|at)_\w+|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""References, addresses, credentials, ids."""
_NAMES_OF_THINGS = {
    "API",
    "CSV",
    "DNS",
    "HMAC-SHA256",
    "HTTP",
    "IP",
    "Python",
    "TLS",
    "UUID",
    "https",
    "whsec_",
}
_ALLOWED_IN_ARABIC = {"English", "payment_intent", "succeeded", "xx"} | _NAMES_OF_THINGS
# Ids, addresses and what people wrote are apart, in boxes of their own.
_OUR_OWN_TEXT = """() => {
  const body = document.body.cloneNode(true);
  for (const other of body.querySelectorAll("bdi, code, pre, [dir=ltr], template, script")) other.remove();
  const named = [...body.querySelectorAll("[aria-label], [title], [placeholder], [data-confirm], [data-busy]")]
    .flatMap(({ attributes }) => [...attributes])
    .filter(({ name }) => ["aria-label", "title", "placeholder", "data-busy"].includes(name))
    .map(({ value }) => value);
  return [document.title, body.textContent, ...named].join(" ");
}"""


def _switch(who: Colleague, lang: str) -> Colleague:
    link = who.page.get_by_role("link", name=_NAMES[lang], exact=True)
    expect(link).to_have_attribute("lang", lang)
    link.click()
    expect(who.page.locator("html")).to_have_attribute("lang", lang)
    return replace(who, lang=lang)


def test_the_other_language_keeps_the_page_and_its_filters(pages: DashboardWorld, owner: Colleague) -> None:
    shop = open_busy_shop(pages, pages.merchant.id)
    for section, title in (
        ("deliveries?status=failed&from=2026-01-31&id=", "Deliveries"),
        ("payments?status=succeeded&search=طلب+ORDER-77&duplicates=yes", "Payments"),
    ):
        owner.open(shop.path(section))
        asked = parse_qs(urlsplit(owner.page.url).query)
        rows = owner.main.get_by_role("row").count()
        for lang in ("ar", "en"):
            who = _switch(owner, lang)
            who.sees(title)
            assert {**parse_qs(urlsplit(owner.page.url).query), "lang": [lang]} == {**asked, "lang": [lang]}
            expect(owner.main.get_by_role("row")).to_have_count(rows)
    owner.open(shop.path(f"payments/{shop.payment}"))
    path = urlsplit(owner.page.url).path
    _switch(owner, "ar")
    assert urlsplit(owner.page.url).path == path


@pytest.mark.parametrize("lang", ["ar", "en"])
def test_the_choice_stays_from_sign_in_to_sign_out_and_after(
    pages: DashboardWorld, colleagues: Colleagues, lang: str
) -> None:
    """Without a word of it in any address; `sees` looks at it on each page."""
    who = _switch(colleagues.come(lang="en" if lang == "ar" else "ar"), lang)
    who.sign_in(pages.make_member(Role.OWNER), PASSWORD)
    who.link("Create an application").click()
    who.field("Name").fill("Coffee to go")
    who.button("Create application").click()
    who.sees("The application was created")
    who.link("Team").click()
    who.sees("Team")
    who.sign_out()
    who.open("/audit")
    who.sees("Sign in")
    assert "lang=" not in who.page.url


def test_at_first_the_browser_says_it(pages: DashboardWorld, colleagues: Colleagues) -> None:
    """Arabic, where it says nothing that we speak. What somebody chooses then counts more."""
    preferences = {
        "en-GB,en;q=0.9,ar;q=0.8": "en",
        "ar-LY,ar;q=0.9,en;q=0.8": "ar",
        "fr": "ar",
        "de,en;q=0.3": "en",
    }
    for preferred, lang in preferences.items():
        who = _prefers(pages, colleagues, preferred, lang)
        who.sees("Sign in")
        chosen = _switch(who, "en" if lang == "ar" else "ar")
        chosen.open("/sign-in")
        chosen.sees("Sign in")


def test_a_country_does_not_hide_the_language(pages: DashboardWorld, colleagues: Colleagues) -> None:
    """Firefox in Libya, set to Arabic first: it names the country, and then English with and without one."""
    for preferred, lang in {"ar-LY,en-US;q=0.7,en;q=0.3": "ar", "en-GB,ar;q=0.5": "en"}.items():
        who = _prefers(pages, colleagues, preferred, lang)
        expect(who.page.locator("html"), preferred).to_have_attribute("lang", lang)


def _prefers(pages: DashboardWorld, colleagues: Colleagues, preferred: str, lang: str) -> Colleague:
    visitor = colleagues.visitors.make(pages.url)
    # The context's own languages are kept even from its extra headers.
    visitor.context.route(
        "**/sign-in*",
        lambda route: route.continue_(headers={**route.request.headers, "accept-language": preferred}),
    )
    return Colleague(visitor.open(f"{pages.url}/sign-in"), visitor, pages.url, lang)


def test_anything_else_in_the_address_is_ignored(colleagues: Colleagues) -> None:
    who = colleagues.come(lang="en")
    for query in ("lang=fr", "lang=", "lang=AR", "lang=ar%00"):
        who.open(f"/sign-in?{query}")
        who.sees("Sign in")


@pytest.mark.timeout(300)
def test_no_english_is_left_in_arabic(pages: DashboardWorld, colleagues: Colleagues) -> None:
    tab = colleagues.come(lang="ar", expected_statuses=EXPECTED)
    found = {}
    for name in every_page(pages, tab):
        text = _GIVEN.sub("", _EXPLAINED.sub("", tab.page.evaluate(_OUR_OWN_TEXT)))
        if left := set(_LATIN.findall(text)) - _ALLOWED_IN_ARABIC:
            found[name] = left
    assert not found, "\n".join(f"{name}: {left}" for name, left in found.items())
