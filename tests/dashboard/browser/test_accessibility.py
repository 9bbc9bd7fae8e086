"""Every page: axe-core finds no violations, it fits screens from 320 px, and Arabic pages have no English text."""

import pytest

from tests.accessibility import SCREENS, Appearance, page_problems, preload_axe
from tests.browser import DESKTOP, SMALL_PHONE
from tests.dashboard.browser.colleague import Colleague, Colleagues
from tests.dashboard.browser.every_page import EXPECTED, every_page
from tests.dashboard.browser.texts import LANGUAGES
from tests.dashboard.browser.translation import english_left_in_arabic
from tests.dashboard.world import DashboardWorld

pytestmark = pytest.mark.browser

# Colours and sizes are the same in both languages, so each language checks one scheme and one screen.
LOOKS = {"ar": Appearance("dark", SMALL_PHONE), "en": Appearance("light", DESKTOP)}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_page_is_accessible_and_fits_small_and_large_screens(
    pages: DashboardWorld, colleagues: Colleagues, lang: str
) -> None:
    """All pages in one test, which takes long. `sees` checks the language and direction of each page."""
    tab = colleagues.come(lang=lang, expected_statuses=EXPECTED)
    preload_axe(tab.visitor.context)
    found = [problem for name in every_page(pages, tab) for problem in _problems(tab, name)]
    assert not found, "\n".join(found)


def _problems(tab: Colleague, name: str) -> list[str]:
    """Return the problems of the page. Leaves it at desktop size."""
    found = page_problems(tab.page, name, LOOKS[tab.lang], SCREENS)
    left = english_left_in_arabic(tab.page) if tab.lang == "ar" else set()
    return found + ([f"{name}: English is left in Arabic: {left}"] if left else [])
