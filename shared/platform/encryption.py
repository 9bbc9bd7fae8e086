"""Encrypts secrets that must be readable again, for the database. `shared.platform.keys` has the keys by purpose."""

import hashlib
import hmac
import json
from typing import Final, Protocol

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

_FERNET_START: Final = "gAAAA"
"""Every Fernet token starts with its version and the upper half of the time. Other texts are envelopes."""


class NoSecretKeysError(Exception):
    """Secrets cannot be stored: no key is configured for their purpose."""

    def __init__(self, variable: str = "MIZAN_SECRET_KEYS") -> None:
        instead = (
            "" if variable == "MIZAN_SECRET_KEYS" else ", and outside production MIZAN_SECRET_KEYS neither"
        )
        super().__init__(f"{variable} has no key to encrypt with{instead}. Make one with `mizan keys new`")


class DecryptionError(Exception):
    """None of the keys decrypts the text: a key was removed, or the text was changed."""


class WrongPurposeError(Exception):
    """The text is authentic, but was encrypted for another purpose: somebody moved it."""


class KeysUnavailableError(Exception):
    """The KMS cannot be asked for a key now. It will pass: try again later."""


def derive_key(key: str, purpose: str) -> bytes:
    """Return a key for another purpose, which cannot decrypt what `key` has encrypted."""
    return hmac.new(key.encode(), purpose.encode(), hashlib.sha256).digest()


class Envelopes(Protocol):
    """Encrypts with keys of a KMS. Every method raises KeysUnavailableError and DecryptionError."""

    def encrypt(self, payload: bytes) -> str: ...

    def decrypt(self, text: str) -> bytes: ...

    def is_newest(self, text: str) -> bool: ...

    def rewrap(self, text: str) -> str: ...


class SecretBox:
    """Encrypts with the first key and decrypts with any of them, so that keys can be rotated.

    With `envelopes` it also decrypts what a KMS's keys have encrypted; with `uses_envelopes` it encrypts with them, and
    its own keys only decrypt. Then every method can raise KeysUnavailableError.
    """

    def __init__(
        self,
        keys: tuple[str, ...],
        *,
        variables: str = "MIZAN_SECRET_KEYS",
        envelopes: Envelopes | None = None,
        uses_envelopes: bool = False,
    ) -> None:
        """`variables` names where the keys come from, for errors."""
        if not keys and not uses_envelopes:
            raise NoSecretKeysError
        self._variables = variables
        self._each = [Fernet(key) for key in keys]
        self._fernet = MultiFernet(self._each) if keys else None
        self._envelopes = envelopes
        self._uses_envelopes = uses_envelopes

    def encrypt(self, text: str, purpose: str) -> str:
        """Encrypt for a purpose, such as the row's key. Only the same purpose decrypts it again."""
        return self._seal(json.dumps([purpose, text]).encode())

    def decrypt(self, encrypted: str, purpose: str) -> str:
        """Return the text; raises DecryptionError or WrongPurposeError."""
        try:
            encrypted_for, text = json.loads(self._open(encrypted))
        except InvalidToken:
            raise DecryptionError(
                f"{purpose} cannot be decrypted with any key of {self._variables}; was one removed too early?"
            ) from None
        except DecryptionError as error:
            raise DecryptionError(f"{purpose} cannot be decrypted: {error}") from None
        if encrypted_for != purpose:
            raise WrongPurposeError(f"{purpose} holds what was encrypted for {encrypted_for}")
        return str(text)

    @property
    def key_labels(self) -> list[str]:
        """What `find_key` can return; the first is the key that encrypts."""
        own = [f"key {number}" for number in range(1, len(self._each) + 1)]
        if self._envelopes is None:
            return own
        kms = ["transit", "transit older"]
        return [*kms, *own] if self._uses_envelopes else [*own, *kms]

    def find_key(self, encrypted: str) -> str | None:
        """Return the label of the key that decrypts it; None if none does."""
        if not _is_fernet(encrypted):
            if self._envelopes is None:
                return None
            try:
                self._envelopes.decrypt(encrypted)
                return "transit" if self._envelopes.is_newest(encrypted) else "transit older"
            except DecryptionError:
                return None
        for number, fernet in enumerate(self._each, 1):
            try:
                fernet.decrypt(encrypted.encode())
            except InvalidToken:
                continue
            return f"key {number}"
        return None

    def reencrypt(self, encrypted: str) -> str:
        """Encrypt it again with the first key, for the same purpose. What no key decrypts stays as it is."""
        try:
            if self._uses_envelopes and self._envelopes is not None and not _is_fernet(encrypted):
                return self._envelopes.rewrap(encrypted)
            return self._seal(self._open(encrypted))
        except (InvalidToken, DecryptionError):
            return encrypted

    def _seal(self, payload: bytes) -> str:
        if self._uses_envelopes and self._envelopes is not None:
            return self._envelopes.encrypt(payload)
        return self._each[0].encrypt(payload).decode()

    def _open(self, encrypted: str) -> bytes:
        """Raises InvalidToken if no own key decrypts it, DecryptionError if the KMS does not."""
        if _is_fernet(encrypted):
            if self._fernet is None:
                raise InvalidToken
            return self._fernet.decrypt(encrypted.encode())
        if self._envelopes is None:
            if encrypted.startswith("m1."):
                raise DecryptionError("a KMS has its key, and TRANSIT_URL is not set")
            raise InvalidToken
        return self._envelopes.decrypt(encrypted)


def _is_fernet(text: str) -> bool:
    return text.startswith(_FERNET_START)
