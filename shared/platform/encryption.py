"""Secrets that we must be able to read again, encrypted for the database with the keys of MIZAN_SECRET_KEYS."""

import hashlib
import hmac
import json

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


class NoSecretKeysError(Exception):
    """Secrets cannot be stored: no key is configured."""

    def __init__(self) -> None:
        super().__init__("MIZAN_SECRET_KEYS has no key to encrypt with. Make one with `mizan keys new`")


class CannotOpenSealError(Exception):
    """None of the keys opens it: a key was taken away, or the text was changed."""


class SealedForAnotherPurposeError(Exception):
    """Whole and ours, but sealed for something else: a ciphertext was moved."""


def derived_key(key: str, purpose: str) -> bytes:
    """A key for another purpose, that opens nothing that was sealed with the one it comes from."""
    return hmac.new(key.encode(), purpose.encode(), hashlib.sha256).digest()


class SecretBox:
    """Seals with the first key, opens with any of them, so that keys can be rotated."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        if not keys:
            raise NoSecretKeysError
        self._each = [Fernet(key) for key in keys]
        self._fernet = MultiFernet(self._each)

    def seal(self, text: str, purpose: str) -> str:
        """The purpose says where it belongs, such as the row's key; only the same purpose opens it again."""
        return self._fernet.encrypt(json.dumps([purpose, text]).encode()).decode()

    def open(self, sealed: str, purpose: str) -> str:
        try:
            envelope = self._fernet.decrypt(sealed.encode())
        except InvalidToken:
            raise CannotOpenSealError(
                f"{purpose} cannot be opened with any key of MIZAN_SECRET_KEYS; was one taken out too early?"
            ) from None
        sealed_for, text = json.loads(envelope)
        if sealed_for != purpose:
            raise SealedForAnotherPurposeError(f"{purpose} holds what was sealed for {sealed_for}")
        return str(text)

    def key_of(self, sealed: str) -> int | None:
        """Which of the keys opens it, the first being 0; None: none of them."""
        for place, fernet in enumerate(self._each):
            try:
                fernet.decrypt(sealed.encode())
            except InvalidToken:
                continue
            return place
        return None

    def reseal(self, sealed: str) -> str:
        """The same, for the same purpose, with the first key. What none opens stays as it is."""
        try:
            return self._fernet.rotate(sealed.encode()).decode()
        except InvalidToken:
            return sealed
