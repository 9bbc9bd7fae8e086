"""Through every page that the checkout can show, in one tab."""

from collections.abc import Iterator

from tests.checkout.browser import words
from tests.checkout.browser.shopper import Shopper, Shoppers
from tests.checkout.browser.states import SHOWN, ready, unknown_link


def every_page(shoppers: Shoppers, tab: Shopper) -> Iterator[str]:
    """The name of each, while the tab shows it. The tab has to expect status 404."""
    world = shoppers.world
    for shown in SHOWN:
        shoppers.lead(tab, shown.make(world))
        tab.sees(shown.title)
        yield shown.name
    yield from _what_mistakes_bring_forth(shoppers, tab)
    tab.pay_by_card("4242424242424242")
    tab.sees(words.PAID)
    yield "just paid"
    tab.page.goto(unknown_link(world, tab.lang))
    tab.sees(words.UNKNOWN_LINK)
    yield "unknown link"


def _what_mistakes_bring_forth(shoppers: Shoppers, tab: Shopper) -> Iterator[str]:
    shoppers.lead(tab, ready(shoppers.world))
    tab.pay()
    tab.is_told(words.CHECK_WHAT_YOU_ENTERED)
    yield "card fields wrong"
    tab.choose("sadad")
    tab.pay()
    tab.has_wrong("Birth year", words.BIRTH_YEAR_WRONG)
    yield "wallet fields wrong"
