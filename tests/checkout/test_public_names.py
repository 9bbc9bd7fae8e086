"""Customers see the public name of the application that they pay, in the language of the page."""

import pytest

from shared.domain.applications.public_names import PublicNames, set_public_names
from tests.checkout.browser.page_states import SHOWN
from tests.checkout.world import CheckoutWorld

MERCHANT = "Tripoli Coffee"


def _set(world: CheckoutWorld, ar: str | None, en: str | None) -> None:
    with world.database.transaction() as connection:
        set_public_names(connection, world.application.id, PublicNames(ar, en))


def test_every_page_shows_the_public_name(pages: CheckoutWorld, subtests: pytest.Subtests) -> None:
    """In the title, the header and the receipt, never the merchant's name."""
    _set(pages, "بن طرابلس", "Tripoli Beans")
    for shown in SHOWN:
        if shown.name == "no method":
            continue  # its application is another one
        intent = shown.make(pages)
        for lang, name in (("ar", "بن طرابلس"), ("en", "Tripoli Beans")):
            with subtests.test(shown.name, lang=lang):
                text = pages.customer(intent, lang).text
                assert text.count(name) >= 2
                assert MERCHANT not in text


def test_language_without_a_public_name_shows_the_merchant(pages: CheckoutWorld) -> None:
    intent = pages.make_intent()
    _set(pages, None, "Tripoli Beans")
    assert MERCHANT in pages.customer(intent, "ar").text
    assert "Tripoli Beans" in pages.customer(intent, "en").text
    _set(pages, None, None)
    assert MERCHANT in pages.customer(intent, "en").text


def test_public_name_is_escaped(pages: CheckoutWorld) -> None:
    _set(pages, None, "<b>Beans</b> & 'co'")
    html = pages.customer(pages.make_intent(), "en").answer.text
    assert "<b>Beans" not in html
    assert "&lt;b&gt;Beans" in html
