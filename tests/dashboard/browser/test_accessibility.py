"""axe-core finds nothing, on any page, in either language, light or dark, wide or narrow."""

import pytest
from playwright.sync_api import ViewportSize

from tests.browser import DESKTOP
from tests.dashboard.browser.colleague import Colleague, Colleagues
from tests.dashboard.browser.tour import EXPECTED, every_page
from tests.dashboard.browser.words import LANGUAGES
from tests.dashboard.world import DashboardWorld
from tests.page_looks import LOOK_DEPENDENT, Look, axe_troubles

NARROW = ViewportSize(width=360, height=740)
# The first with all rules, whichever language; the second with what a change of colours and size can change.
LOOKS = {
    "ar": (Look("light", NARROW), Look("dark", DESKTOP, LOOK_DEPENDENT)),
    "en": (Look("light", DESKTOP), Look("dark", NARROW, LOOK_DEPENDENT)),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_axe_finds_nothing(pages: DashboardWorld, colleagues: Colleagues, lang: str) -> None:
    tab = colleagues.come(lang=lang, expected_statuses=EXPECTED)
    found = [trouble for name in every_page(pages, tab) for trouble in _troubles(tab, name)]
    assert not found, "\n".join(found)


def _troubles(tab: Colleague, name: str) -> list[str]:
    found = axe_troubles(tab.page, name, LOOKS[tab.lang])
    tab.page.emulate_media(color_scheme="light")
    tab.page.set_viewport_size(DESKTOP)
    return found
