"""Which process has the keys of which purposes. docs/security.md shows this table; a test compares them. Pure."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from shared.platform.settings import KeyPurpose

COMMAND_LINE: Final = "cli"
"""bin/mizan. Its command group `keys` also takes the keys of customer data, to count and re-encrypt them."""

STORED_PURPOSES: Final = (
    KeyPurpose.WEBHOOK_SECRETS,
    KeyPurpose.PROVIDER_CREDENTIALS,
    KeyPurpose.CUSTOMER_DATA,
)
"""The purposes whose texts are in the database."""

PROCESS_PURPOSES: Final[Mapping[str, frozenset[KeyPurpose]]] = MappingProxyType(
    {
        "api": frozenset(),
        "checkout": frozenset(
            {KeyPurpose.PROVIDER_CREDENTIALS, KeyPurpose.CUSTOMER_DATA, KeyPurpose.SESSIONS}
        ),
        "checkout-verifier": frozenset({KeyPurpose.PROVIDER_CREDENTIALS, KeyPurpose.CUSTOMER_DATA}),
        "dashboard": frozenset(
            {KeyPurpose.WEBHOOK_SECRETS, KeyPurpose.PROVIDER_CREDENTIALS, KeyPurpose.SESSIONS}
        ),
        "webhooks": frozenset({KeyPurpose.WEBHOOK_SECRETS}),
        "scheduler": frozenset(),
        "monitor": frozenset({KeyPurpose.SESSIONS}),
        "sandbox": frozenset(),
        COMMAND_LINE: frozenset({KeyPurpose.WEBHOOK_SECRETS, KeyPurpose.PROVIDER_CREDENTIALS}),
    }
)
