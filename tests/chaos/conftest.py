"""Fixtures of the tests of `make chaos`: those of the checkout, with its pages and the sandbox."""

from tests.checkout.conftest import bank, pages, world

__all__ = ["bank", "pages", "world"]
