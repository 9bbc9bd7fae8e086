"""Every page: axe-core finds nothing, in either language, light or dark, and it fits screens from 320 px on."""

import pytest
from playwright.sync_api import ViewportSize

from tests.browser import DESKTOP
from tests.dashboard.browser.colleague import Colleague, Colleagues
from tests.dashboard.browser.fitting import out_of_reach_on_any_screen
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
def test_every_page_is_for_everybody_on_every_screen(
    pages: DashboardWorld, colleagues: Colleagues, lang: str
) -> None:
    """In one tour, which takes long. `sees`, on the way, looks at the language and the direction of each page."""
    tab = colleagues.come(lang=lang, expected_statuses=EXPECTED)
    found = [trouble for name in every_page(pages, tab) for trouble in _troubles(tab, name)]
    assert not found, "\n".join(found)


def _troubles(tab: Colleague, name: str) -> list[str]:
    """The page is left wide and light."""
    found = axe_troubles(tab.page, name, LOOKS[tab.lang])
    tab.page.emulate_media(color_scheme="light")
    return found + out_of_reach_on_any_screen(tab, name)
