"""Parses the variables of the keys: one for each purpose, and MIZAN_SECRET_KEYS for all of them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import environs
from cryptography.fernet import Fernet

from shared.platform.settings.definitions import KeyPurpose

FALLBACK_VARIABLE: Final = "MIZAN_SECRET_KEYS"
KEY_VARIABLES: Final[Mapping[KeyPurpose, str]] = MappingProxyType(
    {
        KeyPurpose.WEBHOOK_SECRETS: "MIZAN_WEBHOOK_SECRET_KEYS",
        KeyPurpose.PROVIDER_CREDENTIALS: "MIZAN_PROVIDER_KEYS",
        KeyPurpose.CUSTOMER_DATA: "MIZAN_CUSTOMER_KEYS",
        KeyPurpose.SESSIONS: "MIZAN_SESSION_KEYS",
    }
)


def parse_keys(env: environs.FileAwareEnv) -> Mapping[KeyPurpose, tuple[str, ...]]:
    return {purpose: _parse_keys(env, name) for purpose, name in KEY_VARIABLES.items()}


def parse_secret_keys(env: environs.FileAwareEnv) -> tuple[str, ...]:
    return _parse_keys(env, FALLBACK_VARIABLE)


def _parse_keys(env: environs.FileAwareEnv, name: str) -> tuple[str, ...]:
    return tuple(env.list(name, [], validate=_validate_keys) or ())


def _validate_keys(keys: list[str]) -> None:
    for key in keys:
        try:
            Fernet(key)
        except ValueError:
            # Not which one, nor its value: this text is logged.
            raise environs.ValidationError("Each must be 32 random bytes in URL-safe base64.") from None
