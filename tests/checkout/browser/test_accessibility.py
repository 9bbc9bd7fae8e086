"""axe-core finds nothing, on any page, in either language, light or dark."""

from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.checkout.browser.shopper import Shoppers
from tests.checkout.browser.states import ready
from tests.checkout.browser.tour import every_page
from tests.checkout.browser.words import LANGUAGES
from tests.checkout.world import CheckoutWorld

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# Off in axe-core by itself, but asked for by WCAG 2.2 AA.
OPTIONS = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}

_HAS_CHANGED = "document.getAnimations().every((change) => !(change instanceof CSSTransition))"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_axe_finds_nothing(pages: CheckoutWorld, shoppers: Shoppers, lang: str) -> None:
    tab = shoppers.come(ready(pages), lang, expected_statuses=frozenset({404}))
    axe = Axe()
    found = []
    for name in every_page(shoppers, tab):
        for scheme in SCHEMES:
            tab.page.emulate_media(color_scheme=scheme)
            tab.page.wait_for_function(_HAS_CHANGED)
            results = axe.run(tab.page, options=OPTIONS)
            if results.violations_count:
                found.append(f"--- {name}, {scheme}\n{results.generate_report()}")
    assert not found, "\n".join(found)
