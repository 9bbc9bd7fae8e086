"""Test or live: fixed when an application is created."""

from enum import StrEnum


class ApplicationMode(StrEnum):
    TEST = "test"
    """Its customers pay at the sandbox, and no money moves."""
    LIVE = "live"
    """Its customers pay at the providers of the merchant, with real money."""
