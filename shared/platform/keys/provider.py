"""The key provider: where a process gets its keys from, by purpose.

`LocalKeyProvider` has them from the environment or from files. With `TransitKeyProvider`, in a module of its own, a KMS
has them: it wraps data keys. The keys of sessions, which encrypt nothing that is stored, are local in both.
"""

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
        """Return a key for hashes, which decrypts nothing, at the start of a process.

        Raises NoSecretKeysError without a key for the purpose, and KeysUnavailableError if a KMS stays away.
        """

    def cookie_keys(self) -> tuple[str, ...]:
        """Return the keys of sessions, which sign cookies and forms: the first signs. Raises NoSecretKeysError."""

    def check(self) -> None:
        """Raise KeysUnavailableError if keys come from a KMS, and it stays away while the process starts."""


class LocalKeyProvider:
    """Takes keys from the environment or from files (NAME_FILE). They are in the settings already."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def open_box(self, purpose: KeyPurpose) -> SecretBox:
        return SecretBox(self.keys_of(purpose), variables=key_variables(purpose))

    def derive(self, purpose: KeyPurpose, label: str) -> bytes:
        # The last key: while keys are rotated, every process has it.
        return derive_key(self.keys_of(purpose)[-1], label)

    def cookie_keys(self) -> tuple[str, ...]:
        return self.keys_of(KeyPurpose.SESSIONS)

    def check(self) -> None:
        """Do nothing: the settings have been read."""

    def keys_of(self, purpose: KeyPurpose) -> tuple[str, ...]:
        """Return the purpose's own keys, then those of MIZAN_SECRET_KEYS. Raises NoSecretKeysError.

        In production MIZAN_SECRET_KEYS never encrypts: the purpose needs a key of its own before it.
        """
        keys = all_keys_of(self._settings, purpose)
        has_own = bool(self._settings.keys.get(purpose))
        if not keys or (self._settings.environment is Environment.PRODUCTION and not has_own):
            raise NoSecretKeysError(KEY_VARIABLES[purpose])
        return keys


def open_keys(settings: Settings) -> KeyProvider:
    """Return the key provider that the settings choose."""
    if settings.transit is not None:
        # Imported only now: processes without a KMS need no HTTP client.
        from shared.platform.keys.transit_provider import TransitKeyProvider  # noqa: PLC0415

        return TransitKeyProvider(settings, settings.transit)
    return LocalKeyProvider(settings)


def all_keys_of(settings: Settings, purpose: KeyPurpose) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*settings.keys.get(purpose, ()), *settings.secret_keys)))


def check_keys(process: str, settings: Settings) -> None:
    """Raise NoSecretKeysError if the process lacks a key that it needs, KeysUnavailableError if the KMS stays away."""
    keys = open_keys(settings)
    for purpose in sorted(PROCESS_PURPOSES[process]):
        keys.open_box(purpose)
    keys.check()


def key_variables(purpose: KeyPurpose) -> str:
    return f"{KEY_VARIABLES[purpose]} or {FALLBACK_VARIABLE}"
