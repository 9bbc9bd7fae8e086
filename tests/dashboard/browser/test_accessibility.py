"""axe-core finds nothing, on any page, in either language, light or dark, wide or narrow."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ViewportSize

from tests.browser import DESKTOP
from tests.dashboard.browser.colleague import Colleague, Colleagues
from tests.dashboard.browser.tour import EXPECTED, every_page
from tests.dashboard.browser.words import LANGUAGES
from tests.dashboard.world import DashboardWorld

NARROW = ViewportSize(width=360, height=740)


@dataclass(frozen=True)
class Look:
    scheme: Literal["light", "dark"]
    viewport: ViewportSize
    rules: tuple[str, ...] = ()
    """Those whose answer can differ from the first look's; none for all."""

    @property
    def options(self) -> dict[str, Any]:
        # target-size is off in axe-core by itself, but asked for by WCAG 2.2 AA.
        only = {"runOnly": {"type": "rule", "values": self.rules}} if self.rules else {}
        return {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}, **only}


_OF_COLOUR = ("color-contrast", "link-in-text-block")
_OF_SIZE = ("target-size", "scrollable-region-focusable", "aria-hidden-focus")
# The first with all rules, whichever language; the second with what a change of colours and size can change.
LOOKS = {
    "ar": (Look("light", NARROW), Look("dark", DESKTOP, (*_OF_COLOUR, *_OF_SIZE))),
    "en": (Look("light", DESKTOP), Look("dark", NARROW, (*_OF_COLOUR, *_OF_SIZE))),
}
_HAS_CHANGED = "document.getAnimations().every((change) => !(change instanceof CSSTransition))"
_is_there = Axe("null")
"""Runs what the first look has brought onto the page."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_axe_finds_nothing(pages: DashboardWorld, colleagues: Colleagues, lang: str) -> None:
    tab = colleagues.come(lang=lang, expected_statuses=EXPECTED)
    found = [trouble for name in every_page(pages, tab) for trouble in _troubles(tab, name)]
    assert not found, "\n".join(found)


def _troubles(tab: Colleague, name: str) -> list[str]:
    found = []
    first, _ = looks = LOOKS[tab.lang]
    for look in looks:
        tab.page.emulate_media(color_scheme=look.scheme)
        tab.page.set_viewport_size(look.viewport)
        tab.page.wait_for_function(_HAS_CHANGED)
        axe = Axe() if look is first else _is_there
        results = axe.run(tab.page, options=look.options)
        if results.violations_count:
            found.append(
                f"--- {name}, {look.scheme}, {look.viewport['width']} px\n{results.generate_report()}"
            )
    tab.page.emulate_media(color_scheme="light")
    tab.page.set_viewport_size(DESKTOP)
    return found
