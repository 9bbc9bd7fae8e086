"""Opens every page that the checkout can show, in one tab."""

from collections.abc import Iterator

from tests.checkout.browser import page_texts
from tests.checkout.browser.page_states import SHOWN, break_database, ready, unknown_link
from tests.checkout.browser.shopper import Shopper, Shoppers

EXPECTED = frozenset({400, 404, 500})
"""The statuses of the pages that tell of an error."""


def every_page(shoppers: Shoppers, tab: Shopper) -> Iterator[str]:
    """Yield the name of each page while the tab shows it. The tab has to expect the statuses in `EXPECTED`.

    The last page is shown because the test's database is broken, so no other page can follow.
    """
    world = shoppers.world
    for shown in SHOWN:
        shoppers.lead(tab, shown.make(world))
        tab.sees(shown.title)
        yield shown.name
    yield from _mistakes(shoppers, tab)
    tab.pay_by_card("4242424242424242")
    tab.sees(page_texts.PAID)
    yield "just paid"
    yield from _errors(shoppers, tab)


def _mistakes(shoppers: Shoppers, tab: Shopper) -> Iterator[str]:
    shoppers.lead(tab, ready(shoppers.world))
    tab.pay()
    tab.is_told(page_texts.CHECK_WHAT_YOU_ENTERED)
    yield "card fields wrong"
    tab.choose("sadad")
    tab.pay()
    tab.has_wrong("Birth year", page_texts.BIRTH_YEAR_WRONG)
    yield "wallet fields wrong"


def _errors(shoppers: Shoppers, tab: Shopper) -> Iterator[str]:
    world = shoppers.world
    tab.page.goto(unknown_link(world, tab.lang))
    tab.sees(page_texts.UNKNOWN_LINK)
    yield "unknown link"
    intent = ready(world)
    shoppers.lead(tab, intent)
    tab.visitor.context.clear_cookies()
    tab.pay_by_card("4242424242424242")
    tab.sees(page_texts.FORM_TOO_OLD)
    yield "form too old"
    break_database(world)
    shoppers.lead(tab, intent)
    tab.sees(page_texts.UNAVAILABLE)
    yield "unavailable"
