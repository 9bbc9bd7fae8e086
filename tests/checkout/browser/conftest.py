"""Fixtures for browser tests of the checkout."""

from collections.abc import Iterator

import pytest

from tests.browser import Visitors
from tests.checkout.browser.page_server import serving
from tests.checkout.browser.shopper import Shoppers
from tests.checkout.world import CheckoutWorld


@pytest.fixture
def pages(world: CheckoutWorld) -> Iterator[CheckoutWorld]:
    with serving(world):
        yield world


@pytest.fixture
def shoppers(pages: CheckoutWorld, visitors: Visitors) -> Shoppers:
    return Shoppers(pages, visitors)
