"""Keys by purpose: which process has which, and where they come from."""

from shared.platform.keys.provider import (
    KeyProvider,
    LocalKeyProvider,
    check_keys,
    open_keys,
)
from shared.platform.keys.purposes import COMMAND_LINE, PROCESS_PURPOSES, STORED_PURPOSES

__all__ = [
    "COMMAND_LINE",
    "PROCESS_PURPOSES",
    "STORED_PURPOSES",
    "KeyProvider",
    "LocalKeyProvider",
    "check_keys",
    "open_keys",
]
