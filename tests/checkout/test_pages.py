"""Each page over HTTP: its heading in both languages, the language link, and no side effects."""

import re
from html import unescape
from itertools import product
from uuid import uuid4

import pytest
import requests

from shared.domain.intents.intent import Intent
from tests.checkout.browser import page_texts
from tests.checkout.browser.page_states import SHOWN
from tests.checkout.browser.page_texts import DIRECTIONS, LANGUAGES, say
from tests.checkout.world import CheckoutWorld
from tests.page_client import page_title

_TO_OTHER_LANGUAGE = re.compile(r'<a class="language" href="([^"]+)" lang="(\w+)"[^>]*>([^<]+)</a>')


def _assert_language(html: str, lang: str) -> None:
    assert f'<html lang="{lang}" dir="{DIRECTIONS[lang]}"' in html


def _standing(world: CheckoutWorld, intent: Intent) -> tuple[object, ...]:
    return world.status(intent), world.attempts(intent), world.charges(intent)


def test_every_page_exists_in_both_languages(pages: CheckoutWorld, subtests: pytest.Subtests) -> None:
    """It links to the same page in the other language. Opening it changes nothing."""
    for shown in SHOWN:
        with subtests.test(shown.name):
            intent = shown.make(pages)
            before = _standing(pages, intent)
            for lang, other, name in (("ar", "en", "English"), ("en", "ar", "العربية")):
                customer = pages.customer(intent, lang)
                assert customer.title == say(lang, shown.title)
                _assert_language(customer.answer.text, lang)
                link = _TO_OTHER_LANGUAGE.search(customer.answer.text)
                assert link is not None
                assert link.groups()[1:] == (other, name)
                followed = requests.get(f"{pages.url}{unescape(link[1])}", timeout=30).text
                assert page_title(followed) == say(other, shown.title)
                _assert_language(followed, other)
            assert _standing(pages, intent) == before


def test_page_is_arabic_unless_english_is_requested(pages: CheckoutWorld, subtests: pytest.Subtests) -> None:
    page = pages.page(pages.make_intent())
    for lang in ("en", "ar", "fr", "", "EN", "en\x00", "../en"):
        with subtests.test(lang=lang):
            answer = requests.get(page, params={"lang": lang}, timeout=30)
            _assert_language(answer.text, "en" if lang == "en" else "ar")


@pytest.mark.parametrize(("lang", "amount"), [("ar", "25.500 د.ل."), ("en", "LYD 25.500")])
def test_amount_is_formatted_for_the_language(pages: CheckoutWorld, lang: str, amount: str) -> None:
    """In the title, the header and the button, which has a text for cards and one for wallets."""
    assert pages.customer(pages.make_intent(), lang).text.count(amount) == 4


def test_unknown_links_are_404_in_both_languages(pages: CheckoutWorld, subtests: pytest.Subtests) -> None:
    paths = (
        "/pay/1",
        "/pay/%00",
        "/pay/../../etc/passwd",
        "/pay/" + "x" * 500,
        f"/pay/{uuid4()}",
        "/nothing",
        "/",
    )
    for path, lang in product(paths, LANGUAGES):
        with subtests.test(path=path, lang=lang):
            answer = requests.get(f"{pages.url}{path}", params={"lang": lang}, timeout=30)
            assert answer.status_code == 404
            assert page_title(answer.text) == say(lang, page_texts.UNKNOWN_LINK)
            _assert_language(answer.text, lang)
