"""Encrypts secrets that must be readable again, for the database. `shared.platform.keys` has the keys by purpose."""

import hashlib
import hmac
import json

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


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


def derive_key(key: str, purpose: str) -> bytes:
    """Return a key for another purpose, which cannot decrypt what `key` has encrypted."""
    return hmac.new(key.encode(), purpose.encode(), hashlib.sha256).digest()


class SecretBox:
    """Encrypts with the first key and decrypts with any of them, so that keys can be rotated."""

    def __init__(self, keys: tuple[str, ...], *, variables: str = "MIZAN_SECRET_KEYS") -> None:
        """`variables` names where the keys come from, for errors."""
        if not keys:
            raise NoSecretKeysError
        self._variables = variables
        self._each = [Fernet(key) for key in keys]
        self._fernet = MultiFernet(self._each)

    def encrypt(self, text: str, purpose: str) -> str:
        """Encrypt for a purpose, such as the row's key. Only the same purpose decrypts it again."""
        return self._fernet.encrypt(json.dumps([purpose, text]).encode()).decode()

    def decrypt(self, encrypted: str, purpose: str) -> str:
        """Return the text; raises DecryptionError or WrongPurposeError."""
        try:
            envelope = self._fernet.decrypt(encrypted.encode())
        except InvalidToken:
            raise DecryptionError(
                f"{purpose} cannot be decrypted with any key of {self._variables}; was one removed too early?"
            ) from None
        encrypted_for, text = json.loads(envelope)
        if encrypted_for != purpose:
            raise WrongPurposeError(f"{purpose} holds what was encrypted for {encrypted_for}")
        return str(text)

    @property
    def key_labels(self) -> list[str]:
        """What `find_key` can return; the first is the key that encrypts."""
        return [f"key {number}" for number in range(1, len(self._each) + 1)]

    def find_key(self, encrypted: str) -> str | None:
        """Return the label of the key that decrypts it; None if none does."""
        for label, fernet in zip(self.key_labels, self._each, strict=True):
            try:
                fernet.decrypt(encrypted.encode())
            except InvalidToken:
                continue
            return label
        return None

    def reencrypt(self, encrypted: str) -> str:
        """Encrypt it again with the first key, for the same purpose. What no key decrypts stays as it is."""
        try:
            return self._fernet.rotate(encrypted.encode()).decode()
        except InvalidToken:
            return encrypted
