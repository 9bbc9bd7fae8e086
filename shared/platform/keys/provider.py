"""The key provider: where a process gets its keys from, by purpose."""

from typing import Protocol

from shared.platform.encryption import NoSecretKeysError, SecretBox, derive_key
from shared.platform.keys.purposes import PROCESS_PURPOSES
from shared.platform.settings import (
    FALLBACK_VARIABLE,
    KEY_VARIABLES,
    Environment,
    KeyPurpose,
    Settings,
)


class KeyProvider(Protocol):
    def open_box(self, purpose: KeyPurpose) -> SecretBox:
        """Return what encrypts and decrypts texts of this purpose. Raises NoSecretKeysError without a key for it."""

    def derive(self, purpose: KeyPurpose, label: str) -> bytes:
        """Return a key for hashes, which decrypts nothing. Raises NoSecretKeysError without a key for the purpose."""

    def cookie_keys(self) -> tuple[str, ...]:
        """Return the keys of sessions, which sign cookies and forms: the first signs. Raises NoSecretKeysError."""


class LocalKeyProvider:
    """Takes keys from the environment or from files (NAME_FILE). They are in the settings already."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def open_box(self, purpose: KeyPurpose) -> SecretBox:
        return SecretBox(self.keys_of(purpose), variables=_variables(purpose))

    def derive(self, purpose: KeyPurpose, label: str) -> bytes:
        # The last key: while keys are rotated, every process has it.
        return derive_key(self.keys_of(purpose)[-1], label)

    def cookie_keys(self) -> tuple[str, ...]:
        return self.keys_of(KeyPurpose.SESSIONS)

    def keys_of(self, purpose: KeyPurpose) -> tuple[str, ...]:
        """Return the purpose's own keys, then those of MIZAN_SECRET_KEYS. Raises NoSecretKeysError.

        In production MIZAN_SECRET_KEYS never encrypts: the purpose needs a key of its own before it.
        """
        own = self._settings.keys.get(purpose, ())
        keys = tuple(dict.fromkeys((*own, *self._settings.secret_keys)))
        if not keys or (self._settings.environment is Environment.PRODUCTION and not own):
            raise NoSecretKeysError(KEY_VARIABLES[purpose])
        return keys


def open_keys(settings: Settings) -> KeyProvider:
    """Return the key provider that the settings choose."""
    return LocalKeyProvider(settings)


def check_keys(process: str, settings: Settings) -> None:
    """Raise NoSecretKeysError if the process lacks a key that it needs."""
    keys = open_keys(settings)
    for purpose in sorted(PROCESS_PURPOSES[process]):
        keys.open_box(purpose)


def _variables(purpose: KeyPurpose) -> str:
    return f"{KEY_VARIABLES[purpose]} or {FALLBACK_VARIABLE}"
