"""Whether a page fits the screens that people have: nothing to scroll sideways for, and nothing out of reach."""

from playwright.sync_api import ViewportSize

from tests.browser import DESKTOP, PHONE, SMALL_PHONE
from tests.dashboard.browser.colleague import Colleague
from tests.page_looks import out_of_reach

TABLET = ViewportSize(width=820, height=1180)
SCREENS = (SMALL_PHONE, PHONE, TABLET, DESKTOP)


def out_of_reach_on_any_screen(tab: Colleague, name: str) -> list[str]:
    """The page is left on the last of them."""
    found = []
    for screen in SCREENS:
        tab.page.set_viewport_size(screen)
        found += [f"{name}, {screen['width']} px: {trouble}" for trouble in out_of_reach(tab.page)]
    return found
